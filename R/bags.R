#' Gram matrix of distributions
#'
#' A kernel between distributions, each known from a sample of its own (a bag):
#' the kernel means of all bags, by any of the estimators, and a kernel on them.
#' The result is a [gram()], so that whatever works on points works on
#' distributions.
#'
#' With weights \eqn{\beta}{beta} on the points of bag a and bag b the estimates
#' have the inner product \deqn{G_{ab} = \langle\tilde\mu_a, \tilde\mu_b\rangle
#' = \beta_a'K_{ab}\beta_b,}{G_ab = <mu_a, mu_b> = beta_a' K_ab beta_b,}
#' \eqn{K_{ab}}{K_ab} being the kernel values of their points. For MKME and
#' MMKME it is the mean of the marginalized kernel with the noise of both, for
#' smoothing that with both covariances, for a stack a sum of such terms. Every
#' estimator is fitted to each bag alone, with its own amount of shrinkage; a
#' bag of one point keeps its KME. The kernel's bandwidth is one for all, by
#' default the median distance of all points.
#'
#' @section Kernels between distributions: `level2` is a function of G, with
#' \eqn{R_{ab} = G_{aa} + G_{bb} - 2G_{ab}}{R_ab = G_aa + G_bb - 2 G_ab} the
#' squared distance of two embeddings:
#' \describe{
#'   \item{`"linear"`}{G itself}
#'   \item{`"cosine"`}{\eqn{G_{ab}/\sqrt{G_{aa}G_{bb}}}{G_ab/sqrt(G_aa G_bb)}}
#'   \item{`"rbf"`}{\eqn{\exp(-R_{ab}/(2s^2))}{exp(-R_ab/(2 s^2))}}
#'   \item{`"laplace"`}{\eqn{\exp(-\sqrt{R_{ab}}/s)}{exp(-sqrt(R_ab)/s)}}
#'   \item{`"poly"`}{\eqn{(G_{ab} + c)^p}{(G_ab + c)^p}, c = `offset`, p =
#'     `degree`}
#' }
#' s is `bandwidth2`; `"median"` is the root of the median of
#' \eqn{R_{ab}}{R_ab} over all pairs of bags. S-KMSE changes the length of an
#' embedding alone, which `"cosine"` does not see.
#'
#' @section Bags that help each other: A `target` lets each bag borrow from the
#' others. The estimates are then mixtures of the bags' KMEs, and all that is
#' needed is the matrix G of these.
#' \describe{
#'   \item{`"pooled"`}{S-KMSE towards \eqn{f^*_b}{f*_b}, the mean of the KMEs of
#'     all other bags: James--Stein towards the grand mean. The share is chosen
#'     by the exact leave-one-out score, as in [kme()]. Needs a second bag.}
#'   \item{`"neighbours"`}{the mean of the KMEs of bag b and of all bags a with
#'     \eqn{u_a + u_b - 2G_{ab} \le s_a^2 + s_b^2}{u_a + u_b - 2 G_ab <= s_a^2 +
#'     s_b^2}, \eqn{u} the estimate of \eqn{\|\mu\|^2}{|mu|^2} without bias and
#'     \eqn{s_b^2 = (\mathrm{mean}_i k(x_i, x_i) - u_b)/n_b}{s_b^2 = (mean k(x,
#'     x) - u_b)/n_b} (Marienwald et al.).}
#'   \item{`"aggregate"`}{\eqn{\sum_a w_{ba}\hat\mu_a}{sum_a w_ba mu_a} with the
#'     weights on the simplex that make \eqn{w'Gw - 2w'g_b}{w'Gw - 2 w'g_b}
#'     smallest, \eqn{g_b = G_{\cdot b}}{g_b = G_.b} but \eqn{u_b} as its own
#'     entry: an unbiased estimate of the risk, up to a constant (Blanchard et
#'     al.).}
#' }
#' They are for bags that are alike (see `vignette("distributions", package =
#' "kernmean")`). The last two take a bag of one point as it is.
#'
#' `predict()` gives the values of new bags (rows) with those of the fit
#' (columns), each estimated as if it came alone. A fit on the result, such as
#' [kme_pca()] or [kme_fda()], takes such values as its `newdata`, or the new
#' bags themselves.
#' @section Cost: With N points in M bags O(N^2 d/2) time and O(M^2 + N d)
#' memory; no N by N matrix is formed. F-KMSE adds an eigenproblem of each bag's
#' own matrix, MKME and MMKME a search over noise for each bag and a kernel for
#' each pair, `"aggregate"` a quadratic program of M weights for each bag.
#' @param bags The bags: a list of matrices, data frames or vectors (one
#'   column), with the same columns; or the points of all in one matrix or data
#'   frame, with `id`. Or a [gram()] of all points, with `id`. In the formula
#'   method, `id ~ a + b`: the bag of each row, and the columns of its points.
#' @param kernel The kernel of the points, positive definite.
#' @param estimator The estimator of each bag's kernel mean, see [est_kme()]; by
#'   default `"skmse"` with `target = "pooled"`.
#' @param level2 The kernel of the embeddings, see below.
#' @param target `NULL`, `"pooled"`, `"neighbours"` or `"aggregate"`, see below.
#'   `"pooled"` takes S-KMSE, the others are mixtures of KMEs.
#' @param ... Arguments of the estimator's constructor, as in [kme()]; in the
#'   formula method, also those of the default method.
#' @param id The bag of each row, a factor or a vector, or the name of the
#'   column that has it. Bags come in the order of the levels of a factor, else
#'   in that in which they come first.
#' @param scale The units of the columns over all points, see [units].
#' @param bandwidth2 s, for `"rbf"` and `"laplace"`: `"median"` or a number.
#' @param degree,offset p and c, for `"poly"`.
#' @param formula,data,subset,na.action As in [stats::model.frame()]; missing
#'   values are an error by default.
#' @return A [gram()] of M rows with the names of the bags (class `c("bag_gram",
#' "gram")`), whose further fields are
#' \item{inner}{G, before `level2`}
#' \item{sizes}{the number of points of each bag, named}
#' \item{shrinkage}{a data frame with a row for each bag: `n`; what was chosen
#'   for it, `lambda`, `alpha`, `noise` (the mean over columns), `h` and `c` of
#'   smoothing, the shares of a stack under the candidates' names, or `own` (the
#'   share of its own KME in a mixture), `border` (where some `lambda` of F-KMSE
#'   is at an end of the range searched: is it?); `norm2`, the squared norm of
#'   its estimate}
#' \item{noise}{variances of MKME and MMKME, M rows, d columns}
#' \item{mixing}{with a `target`: the coefficients of the KMEs, a row for each
#'   bag}
#' \item{level2}{list of `type`, `bandwidth`, `rule`, `degree`, `offset`}
#' \item{target, estimator, embedding}{the target and the estimator; what
#'   new bags need}
#'
#' `predict()` returns a matrix with a row for each new bag.
#' @references
#' Muandet, K., Fukumizu, K., Dinuzzo, F. and Schölkopf, B. (2012). Learning
#' from distributions via support measure machines. *NIPS* 25.
#' \doi{10.48550/arXiv.1202.6504}
#'
#' Marienwald, H., Fermanian, J.-B. and Blanchard, G. (2021). High-dimensional
#' multi-task averaging and application to kernel mean embedding. *AISTATS*.
#' \doi{10.48550/arXiv.2011.06794}
#'
#' Blanchard, G., Fermanian, J.-B. and Marienwald, H. (2024). Estimation of
#' multiple mean vectors in high dimension. \doi{10.48550/arXiv.2403.15038}
#' @seealso [smm()] for support vector machines and regression on bags;
#'   [kme_inner()] for a few kernel means; [mmd_test()] for whether two samples
#'   differ.
#' @examples
#' # The weights of the chicks of each feed
#' feeds <- bag_gram(feed ~ weight, chickwts, estimator = "skmse")
#' feeds
#' summary(feeds)
#' round(as.matrix(feeds), 2)
#'
#' # Twenty samples of two kinds, in the plane of two kernel principal axes
#' set.seed(1)
#' bags <- lapply(1:20, \(i) {
#'   matrix(rnorm(60, sd = if (i <= 10) 1 else 1.5), 30)
#' })
#' names(bags) <- paste0(rep(c("a", "b"), each = 10), 1:10)
#' kinds <- bag_gram(bags, estimator = "fkmse", level2 = "rbf")
#' pca <- kme_pca(kinds, ncomp = 2)
#' plot(predict(pca), pch = substr(names(bags), 1, 1))
#' predict(pca, list(new = matrix(rnorm(100), 50)))
#' @export
bag_gram <- function(bags, ...) {
  UseMethod("bag_gram")
}

#' @rdname bag_gram
#' @export
bag_gram.default <- function(bags, kernel = kernel_rbf(), estimator = "kme",
                             level2 = c("linear", "cosine", "rbf", "laplace",
                                        "poly"),
                             target = NULL, ..., id = NULL, scale = FALSE,
                             bandwidth2 = "median", degree = 2, offset = 1) {
  if (missing(bags)) stop_input("'bags' must be given")
  plan <- plan_bags(
    bags, if (!missing(kernel)) check_kernel(kernel),
    if (!missing(estimator)) estimator, level2, target, ..., id = id,
    scale = if (!missing(scale)) scale,
    bandwidth2 = if (!missing(bandwidth2)) bandwidth2,
    degree = if (!missing(degree)) degree,
    offset = if (!missing(offset)) offset
  )
  make_bags(plan)
}

# What a door was given of bags, read and checked, NULL for what was not:
# list(sample, with the kernel to be used, sizes, ordered: do bags come in the
# order of their rows?, estimator, target, level, column, open: is the bandwidth
# to be chosen?, arguments).
plan_bags <- function(bags, kernel = NULL, estimator = NULL,
                      level2 = level_types, target = NULL, ..., id = NULL,
                      scale = NULL, bandwidth2 = NULL, degree = NULL,
                      offset = NULL) {
  if (!is.null(kernel)) check_kernel(kernel)
  theta <- intersect(...names(), c("bandwidth", "sigma", "theta", "gamma"))
  if (length(theta)) {
    stop_input("unused argument: '", theta[1L], "'",
               unused_hint(theta[1L], "kernel"))
  }
  target <- check_bag_target(target)
  if (is.null(estimator)) estimator <- target_estimator(target)$name
  estimator <- check_bag_estimator(read_estimator(estimator, ...))
  check_target_estimator(target, estimator)
  level <- check_level(level2, bandwidth2, degree, offset)
  check_scale(scale)
  found <- sample_bags(bags, id, kernel, scale)
  c(found, list(
    estimator = estimator, target = target, level = level,
    open = has_open_bandwidth(bags, kernel),
    arguments = list(
      kernel = kernel, estimator = estimator, target = target, scale = scale,
      level2 = level$type, bandwidth2 = bandwidth2, degree = degree,
      offset = offset
    )
  ))
}

# The matrix of a plan, by its own kernel or another one.
make_bags <- function(plan, kernel = NULL) {
  if (!is.null(kernel)) plan$sample$kernel <- kernel
  embedding <- embed_bags(plan$sample, plan$sizes, plan$estimator, plan$target)
  new_bag_gram(embedding, plan$level, plan$arguments, plan$column)
}

#' @rdname bag_gram
#' @export
bag_gram.formula <- function(formula, data = NULL, subset, na.action, ...) {
  check_formula(formula, data)
  if ("id" %in% ...names()) {
    stop_input("'id' must not be given with a formula, whose left side it is")
  }
  check_dot(formula)
  layout <- formula_terms(formula, data)
  if (attr(layout, "response") == 0L) {
    stop_input("'formula' must have the bag of each row on its left, as in ",
               "id ~ a + b")
  }
  check_left(layout)
  frame <- formula_frame(match.call(expand.dots = FALSE), layout, data,
                         missing(na.action), parent.frame())
  parts <- split_frame(frame, layout)
  g <- bag_gram.default(parts$x, id = parts$response, ...)
  remember(g, terms = keep_constants(parts$terms, data),
           response = keep_constants(parts$left, data))
  g
}

# What a door was given of points: list(sample, sizes, ordered, column).
sample_bags <- function(bags, id, kernel, scale) {
  if (brings_kernel(bags)) {
    given <- c("kernel", "scale")[c(!is.null(kernel), asks_scale(scale))]
    if (length(given)) {
      stop_input("'", given[1L], "' must not be given when 'bags' is a ",
                 input_word(bags))
    }
    sample <- read_sample(bags)
    check_rows(sample)
    if (is.null(id)) {
      stop_input("'id' must be given when 'bags' is a gram: the bag of each ",
                 "point")
    }
    bag <- check_id(id, sample$n)
    order <- order(as.integer(bag))
    if (is.unsorted(order)) sample <- sample_take(sample, order)
    return(list(sample = sample, sizes = bag_sizes(bag),
                ordered = comes_sorted(id, bag)))
  }
  found <- read_bags(bags, id)
  kernel <- if (is.null(kernel)) kernel_rbf() else kernel
  check_definite(kernel)
  c(list(sample = fit_sample(found$x, kernel, scale, "bags")),
    found[c("sizes", "ordered", "column")])
}

check_bag_target <- function(target) {
  if (is.null(target)) {
    return(NULL)
  }
  if (inherits(target, "kme") || is.list(target)) {
    stop_input("'target' must be NULL or the name of what bags borrow from, ",
               "not ", describe(target), "; towards a kernel mean that is ",
               "given, kme() shrinks one sample")
  }
  if (identical(target, "neighbors")) target <- "neighbours"
  check_choice(target, c("pooled", "aggregate", "neighbours"), "target")
}

# `column`: of the id in data, where a name was given.
new_bag_gram <- function(embedding, level, arguments, column = NULL) {
  level <- fit_level(level, embedding$inner)
  names <- names(embedding$sizes)
  own <- diag(embedding$inner)
  k <- level_values(level, embedding$inner, own, own)
  dimnames(k) <- dimnames(embedding$inner) <- list(names, names)
  g <- new_gram(k, class = "bag_gram")
  kept <- c("sample", "sizes", "estimator", "target", "weights", "noise",
            "parts", "alpha", "mixing", "pool", "inner")
  remember(
    g, inner = embedding$inner, sizes = embedding$sizes,
    shrinkage = embedding$table, level2 = level, target = embedding$target,
    estimator = embedding$estimator, arguments = arguments, column = column,
    embedding = embedding[intersect(kept, names(embedding))],
    noise = name_noise(embedding), mixing = name_mixing(embedding)
  )
  seal_gram(g)
}

name_noise <- function(embedding) {
  if (!is.null(embedding$noise)) {
    structure(t(embedding$noise),
              dimnames = list(names(embedding$sizes),
                              colnames(embedding$sample$x)))
  }
}

name_mixing <- function(embedding) {
  if (!is.null(embedding$mixing)) {
    names <- names(embedding$sizes)
    structure(t(embedding$mixing), dimnames = list(names, names))
  }
}

# --- New bags ----------------------------------------------------------------

#' @rdname bag_gram
#' @param object A result of `bag_gram()`.
#' @param newdata New bags: a list of them, or points with `id`, or a data frame
#'   with the column that `id` or the formula named. Without it, the bags of the
#'   fit.
#' @export
predict.bag_gram <- function(object, newdata, ..., id = NULL) {
  check_dots(...)
  if (missing(newdata)) {
    return(as.matrix(object))
  }
  new_level_values(object, newdata, id)$values
}

# list(values, diagonal) of new bags.
new_level_values <- function(g, newdata, id = NULL) {
  embedding <- g$embedding
  new <- read_new_bags(g, newdata, id)
  found <- embed_new(embedding, new)
  own <- diag(g$inner)
  values <- level_values(g$level2, found$inner, found$norm2, unname(own))
  dimnames(values) <- list(names(new$sizes), names(g$sizes))
  list(values = values, diagonal = level_diagonal(g$level2, found$norm2))
}

lone_bag <- "; give 'id', or a list() of the data frame for one bag"

# list(z: points as the kernel takes them, sizes).
read_new_bags <- function(g, newdata, id) {
  sample <- g$embedding$sample
  sample_points(sample, "'newdata' must hold kernel values of bags: those of ",
                "the fit are known by kernel values alone")
  like <- sample_raw(sample)
  if (inherits(newdata, "bag_gram")) {
    stop_input("'newdata' must hold the points of new bags, not their Gram ",
               "matrix")
  }
  column <- id_column(id, newdata)
  if (is.null(id) && !is_plain_list(newdata)) {
    if (is.data.frame(newdata) && !is.null(g$response)) {
      id <- read_response(g$response, newdata, "newdata", lone_bag)
    } else if (!is.null(g$column) && g$column %in% colnames(newdata)) {
      column <- g$column
    }
  }
  if (!is.null(column)) id <- newdata[, column, drop = TRUE]
  if (!is.null(g$terms)) {
    one <- \(bag) if (is.data.frame(bag)) read_terms(g$terms, bag) else bag
    newdata <- if (is_plain_list(newdata)) lapply(newdata, one) else
      one(newdata)
  }
  found <- if (is_plain_list(newdata)) {
    if (!is.null(id)) {
      stop_input("'id' must not be given when 'newdata' is a list of bags")
    }
    bind_bags(newdata, like, "newdata")
  } else if (is.null(id)) {
    stop_input("'newdata' must be a list of bags, or points with the bag of ",
               "each row",
               if (!is.null(g$column)) paste0(" in column '", g$column, "'"),
               ", not ", describe(newdata), "; split() makes a list of ",
               "bags, list() of one")
  } else {
    x <- check_newdata(newdata, like)
    sort_bags(x, check_id(id, nrow(x), new = TRUE))
  }
  list(z = unname(scale_points(sample$kernel, found$x)), sizes = found$sizes)
}

# For fits on the result: new bags in place of kernel values.
read_kernel_values.bag_gram <- function(g, newdata) {
  # What has the column that tells bags apart holds points.
  named <- is.data.frame(newdata) && !is.null(g$response) ||
    !is.null(g$column) &&
      (is.data.frame(newdata) || g$column %in% colnames(newdata))
  values <- !is_plain_list(newdata) && !named && NCOL(newdata) == nrow(g$K)
  if (values) {
    return(NextMethod())
  }
  found <- new_level_values(g, newdata)
  c(new_values(found$values), list(diagonal = found$diagonal))
}

# --- Methods -----------------------------------------------------------------

#' @export
print.bag_gram <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  m <- length(x$sizes)
  cat("Gram matrix of ", count_of(m, "distribution"), ", ", m, " x ", m, " (",
      format_bytes(8 * m^2), ")\n", sep = "")
  say(bag_lines(x, digits))
  say(known_line(x))
  invisible(x)
}

row_word.bag_gram <- \(g) "distribution"

# What print() says of the bags and of how they were made one number each.
bag_lines <- function(g, digits = digits_shown()) {
  sample <- g$embedding$sample
  columns <- if (knows_points(sample)) {
    paste(" in", count_of(ncol(sample$x), "column"))
  }
  c(
    paste0(describe_bags(g$sizes), columns),
    kernel_lines(sample$kernel),
    describe_bag_means(g, digits),
    describe_level(g$level2)
  )
}

# "S-KMSE (simple shrinkage): lambda by exact leave-one-out", and what came of
# it.
describe_bag_means <- function(g, digits) {
  table <- g$shrinkage
  given <- Filter(length, unclass(g$estimator)[c("lambda", "noise", "h")])
  chosen <- c("alpha", setdiff(c("lambda", "noise", "h", "own"), names(given)))
  chosen <- intersect(chosen, names(table))[1L]
  single <- sum(g$sizes == 1L)
  spread <- \(x) {
    ends <- format(unname(stats::quantile(x, c(0, 0.5, 1), na.rm = TRUE)),
                   digits = digits, trim = TRUE)
    if (ends[1L] == ends[3L]) {
      paste("=", ends[1L])
    } else {
      paste0("from ", ends[1L], " to ", ends[3L], ", median ", ends[2L])
    }
  }
  words <- c(alpha = "alpha", lambda = "lambda", noise = "noise", h = "h",
             own = "share of a bag's own mean")
  c(
    paste("estimator:", format_estimator(g$estimator)),
    if (!is.null(g$target)) paste0("  ", target_words[[g$target]]),
    if (!is.na(chosen)) paste0("  ", words[[chosen]], " ",
                               spread(table[[chosen]])),
    stack_line(g$estimator, table),
    if (any(table$border)) {
      paste0("  on the border of the range searched: ", sum(table$border))
    },
    if (single && !is_average(g$estimator) && is.null(given$noise)) {
      paste0("  ", count_of(single, "bag"), " of one point: ",
             if (single > 1L) "their KMEs" else "its KME")
    }
  )
}

target_words <- c(
  pooled = "towards the mean of the other bags",
  neighbours = "averaged over neighboring bags",
  aggregate = "aggregated over all bags"
)

#' @export
summary.bag_gram <- function(object, ...) {
  found <- NextMethod()
  found$shrinkage <- object$shrinkage
  class(found) <- c("summary.bag_gram", class(found))
  found
}

most_bags_printed <- 20L

#' @export
print.summary.bag_gram <- function(x, digits = digits_shown(), ...) {
  digits <- check_digits(digits)
  NextMethod()
  cat("\n")
  m <- nrow(x$shrinkage)
  print(utils::head(x$shrinkage, most_bags_printed), digits = digits)
  if (m > most_bags_printed) {
    cat("and ", m - most_bags_printed, " more, in the field 'shrinkage'\n",
        sep = "")
  }
  invisible(x)
}

level_arguments <- c("level2", "bandwidth2", "degree", "offset")

#' @export
update.bag_gram <- function(object, ...) {
  changes <- list(...)
  check_changes(changes)
  arguments <- changed_bags(object, changes)
  same_bags <- !any(c("bags", "id") %in% names(changes))
  if (!same_bags) {
    return(do.call(bag_gram.default, arguments, quote = TRUE))
  }
  g <- if (all(names(changes) %in% level_arguments)) {
    relevel_bags(object, arguments)
  } else {
    without_warning("units", do.call(bag_gram.default, again_bags(
      object, arguments, names(changes)
    ), quote = TRUE))
  }
  keep_layout(g, object)
  if (!any(c("kernel", "scale") %in% names(changes))) {
    arguments <- g$arguments
    arguments[c("kernel", "scale")] <- object$arguments[c("kernel", "scale")]
    remember(g, arguments = arguments)
  }
  g
}

# What tells how new data are read, from the gram that they were first read for.
keep_layout <- function(g, from) {
  kept <- mget(c("terms", "response", "column"), from, ifnotfound = list(NULL))
  do.call(remember, c(list(g), Filter(length, kept)))
}

# The same embeddings under a level 2 of another bandwidth.
widen_level <- function(g, factor) {
  if (factor == 1) {
    return(g)
  }
  level <- g$level2
  level$bandwidth <- factor * level$bandwidth
  level$rule <- paste(format_number(factor, 3L), "times the", level$rule)
  embedding <- g$embedding
  embedding$table <- g$shrinkage
  new_bag_gram(embedding, level, g$arguments, g$column)
}

# The arguments of the call with the changes over them.
changed_bags <- function(object, changes) {
  arguments <- object$arguments
  doors <- setdiff(names(formals(bag_gram.default)), c("estimator", "..."))
  own <- names(changes) %in% doors
  if ("level2" %in% names(changes)) {
    arguments[setdiff(level_arguments, "level2")] <- NULL
  }
  arguments[names(changes)[own]] <- changes[own]
  arguments["target"] <- list(check_bag_target(arguments$target))
  if (any(!own)) {
    arguments$estimator <- change_estimator(object$estimator, changes[!own])
  } else if (!fits_target(arguments$target, object$estimator)) {
    arguments$estimator <- NULL
  }
  Filter(\(value) !is.null(value), arguments)
}

# Another level 2 of the same embeddings.
relevel_bags <- function(object, arguments) {
  given <- arguments[intersect(level_arguments, names(arguments))]
  if (is.null(given$level2)) given$level2 <- level_types
  level <- do.call(check_level, given, quote = TRUE)
  embedding <- object$embedding
  embedding$table <- object$shrinkage
  new_bag_gram(embedding, level, arguments)
}

# The same bags for the door again, whose kernel was fitted, unless it changes.
again_bags <- function(object, arguments, changed) {
  sample <- object$embedding$sample
  sizes <- object$sizes
  if (!any(c("kernel", "scale") %in% changed)) {
    arguments[c("kernel", "scale")] <- NULL
    arguments$kernel <- sample_kernel(sample)
  } else if (!"scale" %in% changed) {
    arguments$kernel <- keep_units(arguments$kernel, sample)
  }
  arguments$bags <- sample_input(sample, any(c("kernel", "scale") %in% changed))
  arguments$id <- factor(rep(names(sizes), sizes), names(sizes))
  arguments
}
