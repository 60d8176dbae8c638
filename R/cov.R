# --- Weights and spectrum of the operator ----------------------------------

# COSE: the weights beta of sum_i beta_i phi_i (x) psi_i from h, the product
# entry by entry of the centred Gram matrices. list(weights, lambda, alpha,
# score, minimum, reference, border, select, estimator, norm2 = beta'h beta).
cose_weights <- function(h, estimator, lambda = NULL, select = NULL) {
  fit <- kme.default(new_gram(h), estimator = estimator, lambda = lambda,
                     select = select)
  fields <- c("weights", "lambda", "alpha", "score", "minimum", "reference",
              "border", "select", "estimator", "norm2")
  fit[intersect(fields, names(fit))]
}

# Eigenpairs of sum_i beta_i phi_i (x) phi_i from those of K^c, values > 0:
# list(values, decreasing; vectors, n x r: the weights V of unit-norm
# eigenfunctions sum_i V_ij phi_i). Weights may be negative, values too.
operator_spectrum <- function(values, vectors, weights) {
  half <- vectors * rep(sqrt(values), each = nrow(vectors))
  found <- .Call(C_r_eigen, crossprod(half, weights * half))
  inverse <- vectors * rep(1 / sqrt(values), each = nrow(vectors))
  list(values = found$values,
       vectors = fix_signs(inverse %*% found$vectors))
}
