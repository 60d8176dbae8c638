#' Support measure machines
#'
#' Classification, regression and detection of novelties where each observation
#' is a sample (a bag): support vector machines and ridge regression on a kernel
#' between distributions, [bag_gram()].
#'
#' With H the matrix of `level2` kernel values of the M bags, all machines are
#' \eqn{f(b) = \sum_a \alpha_a H_{ab} + c}{f(b) = sum_a alpha_a H_ab + c}.
#' \describe{
#'   \item{`"classification"`}{C-support vector machines, one for each pair of
#'     classes, which vote (of equals the first). Default for a factor,
#'     characters or logical values.}
#'   \item{`"regression"`}{support vector regression of standardized y with the
#'     tube `epsilon`. Default for numbers.}
#'   \item{`"ridge"`}{kernel ridge regression with a free intercept,
#'     \eqn{\alpha = (H^c + \lambda I)^{-1}(y - \bar y)}{alpha = (Hc + lambda
#'     I)^(-1) (y - mean y)} with the centered matrix \eqn{H^c}{Hc};
#'     \eqn{\lambda}{lambda} is `ridge`.}
#'   \item{`"novelty"`}{the one-class machine, whose limit is moved so that f is
#'     negative for a share \eqn{\nu}{nu} (0.1 by default) of the bags that are
#'     left out with their fold, and so for about that share of new normal bags.
#'     With M bags this share cannot be less than 1/(M + 1). Where the kernel of
#'     the points falls to 0 with the distance, f is negative for bags far from
#'     all others, whatever \eqn{\nu}{nu}. Default without y; then `level2` is
#'     `"rbf"` by default, and `bandwidth2` is `"nearest"`.}
#' }
#' All but ridge regression need the package \pkg{kernlab}.
#'
#' @section Choice of parameters: Parameters with several values are chosen
#' together by cross-validation over bags, with folds drawn in the shares of the
#' classes: by default `cost` from `c(0.1, 1, 10, 100, 1000)`, and an open
#' bandwidth of the points' kernel from 1/4, 1/2, 1, 2 and 4 times the median
#' distance. The score is the share of wrong classes, or the mean squared error
#' in units of the variance of y. Of equal scores the bandwidth nearest to the
#' median distance is taken, then the smallest cost.
#'
#' For ridge regression the penalty is chosen by exact leave-one-out residuals:
#' \eqn{\alpha_i/([(H^c + \lambda I)^{-1}]_{ii} - 1/(M\lambda))}{
#' alpha_i/([(Hc + lambda I)^(-1)]_ii - 1/(M lambda))} (Cawley and Talbot).
#'
#' For novelty no bag says what is strange. There the score is the median
#' distance of a bag from the nearest other one, divided by the median distance
#' of two bags. It is 1 where all bags are equally far apart, as by noise alone.
#' The bandwidth is the narrowest of 1/4, 1/2, 1 and 2 times the median distance
#' whose score is at most 1/2, because a narrow kernel sees more than means; if
#' there is none, it is the one with the smallest score.
#'
#' The scores of chosen parameters are a little too good for new bags, and with
#' a `target` much too good.
#'
#' For classes, the machines with the chosen parameters are fitted once more
#' without each fold, for [probabilities][predict.bag_smm].
#' @section Cost: That of [bag_gram()] for each bandwidth, and O(M^2) to O(M^3)
#' time for each fold and combination; for ridge regression one
#' eigendecomposition of H for each bandwidth.
#'
#' @param bags The bags, as for [bag_gram()], or a result of it.
#' @param y The class or number of each bag: a factor or numbers, in the order
#'   of the bags or with their names (which are needed where a vector `id` is
#'   not sorted); `NULL` for novelty.
#' @param ... Arguments of [bag_gram()] by name: `kernel`, `estimator` (with its
#'   own, but `folds`), `level2`, `target`, `id`, `scale`, `bandwidth2`,
#'   `degree`, `offset`; in the formula method also those of the default method.
#' @param type What is to be learned, see Details; `NULL` for the default of y.
#' @param cost,nu,ridge One number (`cost`: or several to choose among), or
#'   `NULL`. `ridge` is in units of H.
#' @param epsilon Half the width of the tube, in standard deviations of y; 0.1
#'   by default.
#' @param bandwidth The bandwidth of the points' kernel, where that is open:
#'   `"cv"` (default), `"median"`, one number or several to choose among.

#' @param folds The number of folds, or the fold of each bag.
#' @param id The bag of each row, found as `weights` is by [lm()].
#' @param progress Show a progress bar?
#' @param formula `y ~ a + b`, with the value of each row's bag on the left; `~
#'   a + b` for novelty. Also the other way round, `cbind(a, b) ~ y` or `. ~ y`,
#'   as in [mmd_test()].
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return An object of class `c("bag_smm", "kernmean_fit", "smm")`, a list with
#' \item{type, y, levels}{the type of machine; y, named by the bags; classes}
#' \item{gram}{the [bag_gram()] of the bags, with the chosen kernel}
#' \item{coefficients, intercept}{\eqn{\alpha}{alpha}, a row for each bag, a
#'   column for each machine; c}
#' \item{support}{names of the bags with \eqn{\alpha \ne 0}{alpha != 0}}
#' \item{cost, nu, epsilon, ridge}{the values that were used}
#' \item{cv}{a data frame of what was tried, with `bandwidth`, `factor` (times
#'   the median distance), the parameter, `score`, its standard error `se`,
#'   `chosen`; `NULL` if nothing was chosen}
#' \item{folds}{the fold of each bag, numbered from 1}
#' \item{fitted, decision}{classes or values, and decision values, of the bags
#'   of the fit}
#' \item{loo}{for ridge regression the leave-one-out predictions}
#' \item{left_out, sigmoids}{for classes, if parameters were chosen: decision
#'   values of the bags left out with their folds, and A and B of Platt, a row
#'   for each machine; for novelty these decision values, smallest for the
#'   strangest bags of the fit}
#' \item{kernel, n}{the kernel of the points, the number of bags}
#' \item{problem}{`center` and `unit` of y, by which it was standardized}
#' \item{arguments, layout, on_gram}{the arguments that were given, for
#'   `update()`}
#' @section Methods: [predict()][predict.bag_smm], `plot()`, `summary()`,
#' `coef()`, `fitted()`, `residuals()`, and `update()`, with arguments of
#' [bag_gram()] too, on the same folds.
#'
#' @references
#' Cawley, G. C. and Talbot, N. L. C. (2004). Fast exact leave-one-out
#' cross-validation of sparse least-squares support vector machines. *Neural
#' Networks* 17(10), 1467--1475. \doi{10.1016/j.neunet.2004.07.002}
#'
#' Muandet, K., Fukumizu, K., Dinuzzo, F. and Schölkopf, B. (2012). Learning
#' from distributions via support measure machines. *NIPS* 25.
#' \doi{10.48550/arXiv.1202.6504}
#'
#' Muandet, K. and Schölkopf, B. (2013). One-class support measure machines for
#' group anomaly detection. *UAI*. \doi{10.48550/arXiv.1303.0309}
#' @seealso [glossary]; [predict.bag_smm()], [plot.bag_smm()]; [kme_fda()] for
#'   discriminants and [kme_pca()] for components of bags.
#' @examples
#' # Two kinds of samples that differ in spread alone
#' set.seed(1)
#' make <- \(i) matrix(rnorm(60, sd = if (i %% 2) 1 else 1.6), 30)
#' bags <- lapply(1:40, make)
#' y <- rep(c("narrow", "wide"), 20)
#'
#' # Ridge regression: the spread as a number
#' fit <- smm(bags, ifelse(y == "wide", 1.6, 1), type = "ridge")
#' fit
#' predict(fit, list(new = make(1)))
#' @examplesIf requireNamespace("kernlab", quietly = TRUE)
#' fit <- smm(bags, y, estimator = "skmse", level2 = "rbf")
#' summary(fit)
#' plot(fit)
#' predict(fit, list(new = make(2)))
#' predict(fit, list(new = make(2)), type = "decision")
#' @export
smm <- function(bags, ...) {
  UseMethod("smm")
}

#' @rdname smm
#' @export
smm.default <- function(bags, y = NULL, ..., type = NULL, cost = NULL,
                        nu = NULL, epsilon = NULL, ridge = NULL,
                        bandwidth = NULL, folds = 10,
                        progress = interactive()) {
  asked <- request(smm_arguments, dots = TRUE)
  plan <- plan_machine(asked, ...)
  problem <- read_problem(asked, names(plan$sizes), plan$ordered)
  type <- problem$type
  if (type != "ridge") {
    need_package("kernlab", "support vector machines need the package ",
                 "'kernlab'; type = \"ridge\" does without")
  }
  grid <- list(cost = 10^(-1:3), nu = 0.1, epsilon = 0.1, ridge = NA_real_)
  grid <- grid[smm_types[[type]]$parameters]
  grid <- expand.grid(Map(\(usual, value) value %||% usual,
                          grid, asked[names(grid)]))
  choosing <- anyNA(grid) || nrow(grid) * length(plan$kernels) > 1L
  if (type == "novelty" || choosing && type != "ridge") {
    problem$folds <- bag_folds(asked$folds, problem, length(plan$sizes))
  }
  if (choosing || type == "ridge") warn_borrowed(plan$target)
  tuned <- if (choosing) {
    search_machine(plan, problem, grid, asked$progress)
  } else {
    list(g = make_bags(plan, plan$kernels[[1L]]), par = grid)
  }
  new_smm(tuned, problem, stored(asked), inherits(bags, "bag_gram"))
}

# The types of machines: their parameters, first the one that is chosen, their
# titles, and words for their losses.
smm_types <- list(
  classification = list(
    parameters = "cost", title = "Support measure machine, classification",
    loss = "wrong", score = "share of wrong classes"
  ),
  regression = list(
    parameters = c("cost", "epsilon"),
    title = "Support measure machine, regression", loss = "rmse",
    score = "mean squared error / variance of y"
  ),
  novelty = list(
    parameters = "nu", title = "One-class support measure machine",
    loss = "refused", score = "distance of the nearest bag / of all bags"
  ),
  ridge = list(
    parameters = "ridge", title = "Kernel ridge regression on distributions",
    loss = "rmse", score = "leave-one-out mean squared error"
  )
)

# The type, by default that of y.
smm_type <- function(asked) {
  y <- asked$y
  if (!is.null(asked$type)) {
    asked$type
  } else if (is.null(y)) {
    "novelty"
  } else if (is_grouping(y)) {
    "classification"
  } else {
    "regression"
  }
}

smm_arguments <- door_table(
  "smm.default", bags = anything, y = anything,
  type = maybe(choice(names(smm_types))),
  cost = maybe(distinct_positive),
  nu = maybe(number(0, 1, open = TRUE)),
  epsilon = maybe(number()), ridge = maybe(number(open = TRUE)),
  bandwidth = anything,
  folds = \(value, name) {
    if (length(value) == 1L) take(value, count(2L), name) else value
  },
  progress = flag,
  rules = c(lapply(names(smm_types), \(type) {
    others <- setdiff(unlist(lapply(smm_types, `[[`, "parameters")),
                      smm_types[[type]]$parameters)
    do.call(when, c(
      list(\(asked) smm_type(asked) == type, reason = paste0(
        "for type = \"", type, "\""
      )), sapply(others, \(name) NULL, simplify = FALSE)
    ))
  }), list(
    when(\(asked) inherits(asked$bags, "bag_gram"),
         bandwidth = NULL,
         reason = "when 'bags' is a result of bag_gram(), to which it belongs"),
    when(c(type = "novelty"), y = NULL)
  )),
  aside = c("bags", "y", "progress"), hints = c(C = "is called 'cost' here")
)

warn_borrowed <- function(target) {
  if (!is.null(target)) {
    warn_kernmean("with 'target' each bag was estimated with the help of all ",
                  "others, left-out ones too: scores of left-out bags are too ",
                  "good, and new bags may do clearly worse", kind = "target")
  }
}

# The plan of the bags with the kernels to be tried, and the median bandwidth.
# If the bags were given as a Gram matrix, no kernel is chosen.
plan_machine <- function(asked, ...) {
  bags <- asked$bags
  if (inherits(bags, "bag_gram")) {
    if (...length()) {
      stop_input("'", c(...names(), "...")[1L], "' must not be given when ",
                 "'bags' is a result of bag_gram(), to which it belongs")
    }
    return(list(g = bags, sizes = bags$sizes, ordered = TRUE,
                target = bags$target, kernels = list(NULL)))
  }
  novelty <- is.null(asked$y)
  plan <- if (novelty && !"level2" %in% ...names()) {
    plan_bags(bags, ..., level2 = "rbf")
  } else {
    plan_bags(bags, ...)
  }
  # Without y, the bandwidth of a kernel that depends on distances is set by the
  # distances to the nearest bags.
  if (novelty && sees_distances(plan$level$type) &&
        is.null(plan$arguments$bandwidth2)) {
    plan$level$bandwidth <- plan$arguments$bandwidth2 <- "nearest"
  }
  bandwidth <- read_bandwidth(asked$bandwidth, bags, plan$arguments$kernel,
                              "cv")
  kernel <- plan$sample$kernel
  c(plan, list(kernels = tried_kernels(kernel, bandwidth, "cv",
                                       2^(-2:(if (novelty) 1 else 2))),
               median = kernel$bandwidth))
}

#' @rdname smm
#' @export
smm.formula <- function(formula, data = NULL, subset, na.action, id, ...) {
  if (missing(id)) {
    stop_input("'id' must be given with a formula: the bag of each row")
  }
  read <- read_sides(c(y = "answers", x = "numbers"), "id")
  id <- check_id(read$id, nrow(read$x))
  y <- if (!is.null(read$names$y)) bag_answers(read$y, id, read$names$y)
  fit <- smm.default(read$x, y, id = structure(
    id, layout = list(layout = read$layout)
  ), ...)
  fit$na.action <- read$na.action
  fit
}

# The value of y for each bag. All rows of a bag must have the same one.
bag_answers <- function(y, id, name) {
  value <- y[match(levels(id), id)]
  same <- y == value[as.integer(id)]
  wrong <- which(is.na(same) | !same)
  if (length(wrong)) {
    bag <- as.character(id[wrong[1L]])
    stop_input("'", name, "' must be the same in all rows of a bag, none ",
               "missing; bag '", bag, "' has ",
               shorten(unique(as.character(y[id == bag]))))
  }
  names(value) <- levels(id)
  value
}

# A problem, or what smm() is to learn:
#   type     the type of machine
#   y        for each bag a class or a standardized number; NULL for novelty
#   center   number by which y was centered
#   unit     number by which y was divided
#   folds    the fold of each bag, where there are folds
new_problem <- function(type, y = NULL, center = NULL, unit = NULL) {
  list(type = type, y = y, center = center, unit = unit)
}

# The problem that the arguments describe; `bags` holds the names of the bags.
read_problem <- function(asked, bags, ordered) {
  type <- smm_type(asked)
  if (type == "novelty") {
    return(new_problem(type))
  }
  if (is.null(asked$y)) {
    stop_input("'y' must be given for type = \"", type, "\"")
  }
  y <- order_answers(asked$y, bags, ordered)
  if (type == "classification") {
    # The machines for pairs of classes ignore an order of the classes.
    y <- factor(y, levels(as_factor(y)), ordered = FALSE)
    return(new_problem(type, check_classes(y, "y", "bags")))
  }
  if (!is.numeric(y)) {
    stop_input("'y' must be numeric for type = \"", type, "\", not ",
               describe(y))
  }
  if (is.null(asked$type) && length(y) > 2L && length(unique(y)) == 2L) {
    warn_kernmean("'y' has two values only and is taken as numbers; ",
                  "factor(y) makes classes of them")
  }
  if (length(y) < 3L) {
    stop_input("'bags' must be at least 3 for type = \"", type, "\", not ",
               length(y))
  }
  y <- as.double(y)
  check_result(sum(y^2), "the sum of squares of 'y'", "'y'")
  if (type == "ridge") {
    return(new_problem(type, y, 0, 1))
  }
  unit <- stats::sd(y)
  if (!(unit > 0)) unit <- 1
  new_problem(type, (y - mean(y)) / unit, mean(y), unit)
}

# y in the order of the bags, unnamed.
order_answers <- function(y, bags, ordered) {
  check_labels(y, length(bags), "y", "bags")
  if (is.numeric(y)) check_finite(as.vector(y), "y")
  if (is.null(names(y)) && !ordered) {
    stop_input("'y' must have the names of the bags, whose order is another ",
               "than that of their rows: names(y) <- the id of each")
  }
  # If the bags have only numbers for names, the values of y are matched by
  # position.
  bare <- ordered && identical(bags, as.character(seq_along(bags))) &&
    !any(names(y) %in% bags)
  if (!bare) y <- in_order(y, bags, "y", "the bags")
  if (is.factor(y)) unname(y) else as.vector(unname(y))
}

# --- The choice --------------------------------------------------------------

# The Gram matrix `g` with the chosen kernel, the row `par` of the grid that was
# chosen, and `cv`, a data frame of what was tried.
search_machine <- function(plan, problem, grid, progress) {
  tried <- seq_along(plan$kernels)
  rows <- lapply_shown(tried, \(i) {
    g <- make_bags(plan, plan$kernels[[i]])
    data.frame(
      kernel = i, bandwidth = one_number(g$embedding$sample$kernel$bandwidth),
      score_machines(g, problem, grid), row.names = NULL
    )
  }, progress && length(tried) * length(plan$sizes) > shown_from)
  cv <- do.call(rbind, rows)
  best <- choose_row(cv, problem$type, plan$median)
  cv$chosen <- seq_len(nrow(cv)) == best
  cv$factor <- cv$bandwidth / one_number(plan$median)
  par <- take_rows(grid, 1L)
  found <- intersect(names(par), names(cv))
  par[found] <- cv[best, found]
  kept <- c("bandwidth", if (!anyNA(cv$factor)) "factor", "cost", "nu",
            "ridge", "score", "se", "chosen")
  list(g = make_bags(plan, plan$kernels[[cv$kernel[best]]]), par = par,
       cv = cv[intersect(kept, names(cv))])
}

# The fit of smm(), from what search_machine() found; ?smm has its fields.
new_smm <- function(tuned, problem, arguments, on_gram) {
  g <- tuned$g
  bags <- names(g$sizes)
  type <- problem$type
  y <- problem$y
  ridge <- tuned$par$ridge
  named <- \(values) if (!is.null(values)) stats::setNames(values, bags)
  machine <- if (type == "ridge") {
    fit_ridge(g, y, ridge)
  } else {
    fit_machine(g$K, problem, tuned$par)
  }
  if (type == "novelty") {
    machine <- limit_machine(machine, g, problem, tuned$par)
  }
  rownames(machine$coefficients) <- bags
  decision <- machine_values(machine, g$K)
  fields <- c(list(
    type = type,
    y = named(if (is.numeric(y)) problem$center + problem$unit * y else y),
    levels = if (type == "novelty") c("normal", "novel") else levels(y),
    gram = g, coefficients = machine$coefficients,
    intercept = machine$intercept,
    support = bags[rowSums(machine$coefficients != 0) > 0]
  ), as.list(tuned$par), list(
    cv = tuned$cv, folds = named(problem$folds),
    problem = problem[c("center", "unit")], n = length(bags),
    kernel = g$embedding$sample$kernel, arguments = arguments,
    decision = decision
  ))
  fields$fitted <- smm_answer(fields, decision)
  fields$left_out <- named(machine$left_out)
  if (type == "ridge") {
    fields$loo <- named(y - ridge_residuals(ridge_system(g), y, ridge))
  }
  if (is.factor(y) && length(problem$folds)) fields <- calibrate(fields)
  fields$layout <- g$layout
  fields$on_gram <- on_gram
  # The package mildsvm has methods for its own class smm.
  new_fit("bag_smm", fields, also = "smm")
}

# A machine of novelty whose intercept is moved so that the limit is 0, and the
# decision values of bags left out. A new normal bag is equally likely to have
# any rank among these values, and so about a share nu of normal bags is below
# the limit. Bags far from all others are always below it.
limit_machine <- function(machine, g, problem, par) {
  left_out <- left_out_values(g$K, problem, par)
  place <- max(1, floor(par$nu * (nrow(left_out) + 1) + 1e-9))
  limit <- max(sort(left_out)[place], least_limit(g, machine))
  machine$intercept <- machine$intercept - limit
  machine$left_out <- left_out[, 1L] - limit
  machine
}

# A number just above the decision value of a bag that is infinitely far from
# all others; NULL unless the kernel falls to 0 at long distances. The inner
# products of such a bag with others are 0, and its own norm is small if its
# points are far from each other, too.
least_limit <- function(g, machine) {
  height <- flat_diagonal(g$embedding$sample$kernel)
  if (!is.null(height)) {
    norm2 <- diag(g$inner)
    least <- min(norm2, height / max(g$sizes))
    far <- level_values(g$level2, t(0 * norm2), least, norm2)
    values <- machine_values(machine, rbind(far, g$K))
    0.999 * values[1L] + 0.001 * max(values)
  }
}

# Classes or values from decision values.
smm_answer <- function(object, decision) {
  answer <- switch(object$type,
    classification = vote(decision, object$levels),
    novelty = factor(ifelse(decision[, 1L] < 0, "novel", "normal"),
                     object$levels),
    object$problem$center + object$problem$unit * decision[, 1L]
  )
  stats::setNames(answer, rownames(decision))
}

# --- Machines -----------------------------------------------------------------
# A machine on a Gram matrix of M bags, or P of them; decision values are L
# coefficients + intercept for kernel values L of new bags:
#   coefficients   M x P matrix
#   intercept      P numbers
new_machine <- function(coefficients, intercept) {
  list(coefficients = coefficients, intercept = intercept)
}

# The support vector machine by kernlab; for classes one machine for each pair,
# positive for the second class. On a kernel matrix kernlab's shrinking
# heuristic can stop at a wrong solution, after seconds; without it these
# problems take milliseconds. kernlab keeps kernel values in single precision,
# and a value that is infinite there ends R. So very large or small values are
# divided by a unit. The coefficients of a machine with a cost, and the
# intercept of one without, are turned back afterwards.
fit_machine <- function(k, problem, par) {
  m <- nrow(k)
  y <- problem$y
  # If all values of y fit into one tube, there are no support vectors.
  if (problem$type == "regression" && diff(range(y)) <= 2 * par$epsilon) {
    return(new_machine(matrix(0, m, 1L), mean(range(y))))
  }
  top <- max(abs(k))
  unit <- if (top > 1e30 || top < 1e-30) power_below(top) else 1
  asked <- switch(problem$type,
    classification = list(y, type = "C-svc", C = par$cost * unit),
    regression = list(y, type = "eps-svr", C = par$cost * unit,
                      epsilon = par$epsilon),
    novelty = list(type = "one-svc", nu = par$nu)
  )
  solved <- tryCatch(do.call(kernlab::ksvm, c(
    list(kernlab::as.kernelMatrix(unname(k) / unit)), asked,
    list(shrinking = FALSE, fit = FALSE)
  )), error = \(e) {
    stop_kernmean("numeric", "kernlab cannot find the machine: ",
                  conditionMessage(e))
  })
  coefficients <- machine_coefficients(solved, m, levels(y))
  if (problem$type == "novelty") {
    new_machine(coefficients, -kernlab::b(solved) * unit)
  } else {
    new_machine(coefficients / unit, -kernlab::b(solved))
  }
}

# The coefficients of machines that kernlab found, m x P matrix, with names of
# the pairs of classes if there are classes.
machine_coefficients <- function(solved, m, classes) {
  values <- kernlab::coef(solved)
  index <- kernlab::alphaindex(solved)
  if (is.null(classes)) {
    values <- list(values)
    index <- list(index)
  }
  coefficients <- matrix(vapply(seq_along(values), \(p) {
    replace(numeric(m), index[[p]], values[[p]])
  }, numeric(m)), m)
  if (!is.null(classes)) {
    pairs <- utils::combn(classes, 2L)
    colnames(coefficients) <- paste0(pairs[2L, ], "/", pairs[1L, ])
  }
  coefficients
}

# The decision values of bags with these kernel values.
machine_values <- function(machine, values) {
  out <- product(unname(values), machine$coefficients) +
    rep(machine$intercept, each = nrow(values))
  dimnames(out) <- list(rownames(values), colnames(machine$coefficients))
  out
}

# The class that wins most votes of pairs; the first one if several win equally
# many.
vote <- function(decision, levels) {
  pairs <- utils::combn(length(levels), 2L)
  classes_at <- \(row) outer(pairs[row, ], seq_along(levels), `==`)
  second <- decision > 0
  votes <- second %*% classes_at(2L) + (!second) %*% classes_at(1L)
  factor(levels[max.col(votes, "first")], levels)
}

# --- Ridge regression --------------------------------------------------------

# The ridge regression in the axes of H^c, the centered H. As the intercept has
# no penalty, the coefficients are alpha = (H^c + lambda I)^{-1} (y - mean y)
# with the sum 0, and the constant vector is no axis. The result and the row
# means of H are stored in the gram of H.
ridge_system <- function(g) {
  if (is.null(g$ridge)) {
    centering <- center_gram(unname(g$K))
    centered <- new_gram(centering$k)
    centered$scale <- max(abs(g$K))
    s <- spectrum(centered, "vectors")
    # The constant vector has the eigenvalue 0 and is mixed into other
    # eigenvectors with this eigenvalue; it is taken out of all of them.
    axes <- s$vectors - rep(colMeans(s$vectors), each = nrow(g$K))
    g$ridge <- new_ridge(s$values, z = axes)
    g$means <- centering$at
  }
  g$ridge
}

ridge_weights <- function(r, y, lambda) {
  product(r$z, ridge_solve(r, lambda, drop(cross(r$z, matrix(y - mean(y))))))
}

fit_ridge <- function(g, y, lambda) {
  alpha <- ridge_weights(ridge_system(g), y, lambda)
  new_machine(alpha, mean(y) - sum(g$means * alpha))
}

# Exact leave-one-out residuals, where the intercept is fitted again without
# each bag: alpha_i divided by entry i of the diagonal of (H^c + lambda I)^{-1}
# without the constant vector. This formula keeps its digits even if the penalty
# is small and the fit interpolates.
ridge_residuals <- function(r, y, lambda) {
  n <- length(y)
  if (lambda == Inf) {
    return((y - mean(y)) * n / (n - 1))
  }
  drop(ridge_weights(r, y, lambda)) / drop(r$z^2 %*% ridge_inverse(r, lambda))
}

# --- Cross-validation --------------------------------------------------------

# The fold of each bag. If `folds` is a number of folds, each fold has about the
# same shares of classes.
bag_folds <- function(folds, problem, m, how = "drawn") {
  if (m < 2L) {
    stop_input("'bags' must be at least 2 for cross-validation, not 1")
  }
  classes <- is.factor(problem$y)
  fold <- if (is.numeric(folds) && length(folds) == 1L) {
    make_folds(m, folds, how, if (classes) problem$y else rep(1L, m))
  } else {
    as.integer(read_folds(folds, m, "bags"))
  }
  if (classes) {
    counts <- table(problem$y, fold)
    lost <- which(counts == rowSums(counts), arr.ind = TRUE)
    if (nrow(lost)) {
      stop_input("'folds' must leave bags of each class outside each fold; ",
                 "class '", rownames(counts)[lost[1L, 1L]], "' has none ",
                 "outside fold ", lost[1L, 2L])
    }
  }
  fold
}

# A data frame of the machines that were tried with one kernel: the columns of
# `grid`, score and se. Scores are shares of wrong classes or mean squared
# errors of bags left out with their folds; for novelty, distances of the
# nearest bags.
score_machines <- function(g, problem, grid) {
  y <- problem$y
  if (problem$type == "novelty") {
    return(data.frame(grid, score = nearest_share(g$inner)))
  }
  if (problem$type == "ridge") {
    system <- ridge_system(g)
    score <- \(path) {
      vapply(path, \(ridge) mean(ridge_residuals(system, y, ridge)^2), 1)
    }
    top <- system$values[1L]
    if (is.na(grid$ridge) && top > 0) {
      best <- search_lambda(score, top)
      return(data.frame(ridge = best$lambda, score = best$minimum))
    }
    ridge <- if (is.na(grid$ridge)) Inf else grid$ridge
    return(data.frame(ridge, score = score(ridge)))
  }
  losses <- vapply(seq_len(nrow(grid)), \(i) {
    value <- left_out_values(g$K, problem, take_rows(grid, i))
    switch(problem$type,
      classification = as.numeric(vote(value, levels(y)) != y),
      regression = (value[, 1L] - y)^2
    )
  }, numeric(nrow(g$K)))
  data.frame(grid[names(grid) != "epsilon"], mean_losses(losses))
}

# The decision values of each bag by machines of the bags outside its fold.
left_out_values <- function(k, problem, par) {
  by_folds(problem$folds, \(out) {
    inside <- problem
    inside$y <- problem$y[-out]
    machine <- fit_machine(k[-out, -out, drop = FALSE], inside, par)
    machine_values(machine, k[out, -out, drop = FALSE])
  })
}

# The rows of f(out) for the bags of each fold, in the order of the bags.
by_folds <- function(folds, f) {
  parts <- split(seq_along(folds), folds)
  take_rows(do.call(rbind, lapply(unname(parts), f)), order(unlist(parts)))
}

# The median over bags of the distance to the nearest other bag, divided by the
# median distance of all pairs of bags. It is 1 where all distances are alike,
# as between samples that differ by noise only.
nearest_share <- function(inner) {
  apart <- level_distances(inner)
  all <- stats::median(apart[upper.tri(apart)])
  if (all > 0) sqrt(stats::median(nearest_distances(apart)) / all) else 1
}

# The number of the row that is chosen. It has the smallest score; among equal
# scores the bandwidth nearest to the `usual` one, and then the smallest cost.
# For novelty it has the narrowest kernel with which nearest bags are clearly
# nearer than others, if there is one.
choose_row <- function(cv, type, usual) {
  wide <- ifelse(is.na(cv$bandwidth), 0, cv$bandwidth)
  if (type == "novelty") {
    near <- cv$score <= 0.5
    return(order(!near, if (any(near)) wide else cv$score)[1L])
  }
  away <- if (length(usual) == 1L) abs(log(wide / usual)) else 0 * wide
  last <- cv$cost %||% wide
  order(signif(cv$score, 10L), signif(away, 10L), last)[1L]
}

# --- New bags -----------------------------------------------------------------

#' Classes, probabilities, values and decision values of new bags
#'
#' What a support measure machine, or a ridge regression on bags, says of new
#' bags.
#'
#' @section Probabilities: Where the machine for two classes has the decision
#'   value f, that of the second is Platt's
#'   \deqn{r = 1/(1 + \exp(Af + B)), \quad A \le 0.}{
#'   r = 1/(1 + exp(A f + B)), A <= 0.}
#'   A and B minimize the cross-entropy
#'   \eqn{-\sum_i (t_i \log r_i + (1 - t_i) \log(1 - r_i))}{
#'   -sum_i (t_i log r_i + (1 - t_i) log(1 - r_i))} over the bags of the two
#'   classes, each with the decision value that it has *left out* with its fold,
#'   by Newton's method (Lin, Lin and Weng). The targets are
#'   \eqn{t = (N_+ + 1)/(N_+ + 2)}{t = (N+ + 1)/(N+ + 2)} for the
#'   \eqn{N_+}{N+} bags of the second class and \eqn{1/(N_- + 2)}{1/(N- + 2)}
#'   for those of the first, so that few bags claim little, even where f splits
#'   them. Platt allows A > 0, which comes where classes hardly differ; here
#'   A = 0 is taken there, and r is the share of the class.
#'
#'   Of more classes the pairs are coupled: with \eqn{r_{ij}}{r_ij} that of i
#'   against j, the probabilities p minimize
#'   \deqn{\sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2}{
#'   sum_i sum_(j != i) (r_ji p_i - r_ij p_j)^2}
#'   with the sum 1 (Wu, Lin and Weng, their second method).
#'
#'   The class remains that of the machines and their votes; near even odds
#'   another one may have the largest probability. The folds are those of the
#'   choice of parameters. If nothing was chosen, they are the argument `folds`
#'   of [smm()] (of a number that many, of neighbors within each class), and
#'   each call takes so many fits. `tidy(fit, "calibration")` says how often the
#'   class of the largest probability was right, in ten bins of equal counts,
#'   with exact 95% intervals, of bags left out; A and B, too, are those of the
#'   other folds.
#'
#' @param object A fit of [smm()].
#' @param newdata New bags, as for `predict()` of [bag_gram()]: a list, points
#'   with `id`, or a data frame with the column that tells them apart; for a fit
#'   on a `bag_gram`, a matrix of its kernel values too. Without it, the bags of
#'   the fit: these were not left out, and their probabilities are too sure.
#' @param type `"class"`: of a classification, or `normal` and `novel`;
#'   `"value"`: of a regression; `"decision"`: the decision values f;
#'   `"probability"`: of each class of a classification. `NULL` for the first
#'   that there is.
#' @param ... Must be empty.
#' @param id The bag of each row of `newdata`.
#' @return A factor or numbers, named by the bags. Decision values of two
#'   classes, of novelty and of regression are a named vector; those of more
#'   classes are a matrix with a column for each pair, `b/a`, positive for b.
#'   For two classes they are positive for the second level. Those of a support
#'   vector regression are in standard deviations of y from its mean. A bag is
#'   novel where f is negative. Probabilities are a matrix with a row for each
#'   bag and a column for each class.
#' @references
#' Lin, H.-T., Lin, C.-J. and Weng, R. C. (2007). A note on Platt's
#' probabilistic outputs for support vector machines. *Machine Learning* 68(3),
#' 267--276. \doi{10.1007/s10994-007-5018-6}
#'
#' Platt, J. C. (1999). Probabilistic outputs for support vector machines and
#' comparisons to regularized likelihood methods. In *Advances in Large Margin
#' Classifiers*, 61--74. MIT Press.
#'
#' Wu, T.-F., Lin, C.-J. and Weng, R. C. (2004). Probability estimates for
#' multi-class classification by pairwise coupling. *Journal of Machine Learning
#' Research* 5, 975--1005.
#' @seealso [glossary]; [smm()]
#' @examplesIf requireNamespace("kernlab", quietly = TRUE)
#' # Chicks as bags of weights and times: how sure is the diet of four?
#' set.seed(1)
#' new <- ChickWeight$Chick %in% c(3, 27, 33, 48)
#' known <- droplevels(ChickWeight[!new, ])
#' fit <- smm(Diet ~ Time + weight, known, id = Chick, scale = TRUE,
#'            bandwidth = "median")
#' round(predict(fit, ChickWeight[new, ], type = "probability"), 2)
#'
#' # Groups of flowers; a strange one is mixed of two species
#' set.seed(1)
#' x <- as.matrix(iris[1:4])
#' group <- \(rows) x[sample(rows, 8), ]
#' normal <- replicate(30, group(51:100), simplify = FALSE)
#' fit <- smm(normal[1:20])
#' new <- c(normal[21:30], replicate(10, group(51:150), simplify = FALSE))
#' names(new) <- paste0(rep(c("plain", "mixed"), each = 10), 1:10)
#' predict(fit, new)
#' @export
predict.bag_smm <- function(object, newdata = NULL, type = NULL, ...,
                            id = NULL) {
  check_dots(...)
  same_version(object)
  usual <- if (is.null(object$levels)) "value" else "class"
  type <- if (is.null(type)) usual else
    take(type, choice(usual, "decision", "probability"))
  if (type == "probability") object <- calibrate(object)
  decision <- smm_decision(object, newdata, id)
  if (type == usual) {
    smm_answer(object, decision)
  } else if (type == "probability") {
    class_probability(decision, object$sigmoids, object$levels)
  } else if (ncol(decision) > 1L) {
    decision
  } else {
    stats::setNames(decision[, 1L], rownames(decision))
  }
}

smm_decision <- function(object, newdata, id = NULL) {
  if (is.null(newdata)) {
    return(object$decision)
  }
  if (!is.null(id)) newdata <- predict(object$gram, newdata, id = id)
  machine_values(object, read_kernel_values(object$gram, newdata)$values)
}

# The fit with `left_out`, the decision values of bags left out with their
# folds, and the `sigmoids` fitted to these values. If nothing was chosen, there
# are no folds yet. They are not drawn at random: successive bags of a class
# make a fold.
calibrate <- function(object, name = "type", value = "probability") {
  if (object$type != "classification") {
    stop_input("'", name, "' must not be \"", value, "\" unless classes were ",
               "learned; a fit of type \"", object$type, "\" has no ",
               "probabilities")
  }
  if (is.null(object$sigmoids)) {
    problem <- object[c("type", "y", "folds")]
    problem$y <- unname(object$y)
    if (is.null(object$folds)) {
      warn_borrowed(object$gram$target)
      object$folds <- problem$folds <-
        bag_folds(object$arguments$folds %||% formals(smm.default)$folds,
                  problem, object$n, "blocks")
    }
    object$left_out <- left_out_values(object$gram$K, problem, object["cost"])
    object$sigmoids <- fit_sigmoids(object$left_out, problem$y)
  }
  object
}

# The probabilities of bags left out; each fold uses the sigmoids fitted to the
# other folds.
left_out_probability <- function(object) {
  object <- calibrate(object, "matrix", "calibration")
  values <- object$left_out
  by_folds(object$folds, \(out) {
    sigmoids <- fit_sigmoids(take_rows(values, -out), object$y[-out])
    class_probability(take_rows(values, out), sigmoids, object$levels)
  })
}


# --- Verbs -------------------------------------------------------------------

fit_lines.bag_smm <- function(x, digits) {
  number <- \(value) format(value, digits = digits)
  kind <- smm_types[[x$type]]
  name <- kind$parameters[1L]
  left_out <- chosen_loss(x)
  c(
    kind$title, bag_lines(x$gram, digits),
    paste0(
      paste(kind$parameters, vapply(x[kind$parameters], number, ""),
            collapse = ", "),
      if (length(x$arguments[[name]]) == 1L) {
        " (given)"
      } else if (x$type == "ridge") {
        " (exact leave-one-out)"
      } else if (length(x$folds) && x$type != "novelty") {
        paste0(" (", max(x$folds), "-fold cross-validation)")
      }
    ),
    if (x$type == "classification") {
      paste("classes", quoted(x$levels, 6L))
    },
    if (x$type != "ridge") {
      paste(length(x$support), "of", x$n, "bags are support bags")
    },
    paste0(kind$loss, " ", number(fit_error(x)), " in the fit",
           if (length(left_out)) paste0(", ", number(left_out), " left out")),
    if (is.null(x$levels)) paste("standard deviation of y",
                                 number(stats::sd(x$y)))
  )
}

# The loss of bags that were left out; NULL where nothing was chosen.
chosen_loss <- function(object) {
  best <- object$cv$score[object$cv$chosen]
  if (object$type == "ridge") {
    sqrt(mean((object$loo - object$y)^2))
  } else if (object$type == "novelty") {
    mean(object$left_out < 0)
  } else if (object$type == "regression" && length(best)) {
    object$problem$unit * sqrt(best)
  } else {
    best
  }
}

# The share of wrong classes or of refused bags, or the root mean squared error.
fit_error <- function(object) {
  switch(object$type,
    classification = mean(object$fitted != object$y),
    novelty = mean(object$fitted == "novel"),
    sqrt(mean((object$fitted - object$y)^2))
  )
}

fit_summary.bag_smm <- function(x) {
  c(if (x$type == "classification") list(
    confusion = structure(table(predicted = x$fitted, true = x$y),
                          title = "Classes of the bags in the fit"),
    support = structure(c(table(x$y[x$support])),
                        title = "Support bags by class")
  ), if (!is.null(x$cv)) {
    list(cv = structure(x$cv, title = "What was tried"))
  })
}

fit_rows.bag_smm <- function(x, matrix = c("coefficients", "cv",
                                           "calibration"), ...) {
  check_dots(...)
  matrix <- take(matrix, choice("coefficients", "cv", "calibration"))
  if (matrix == "cv") {
    return(tried_of(x, "matrix"))
  }
  if (matrix == "calibration") {
    return(calibration_table(left_out_probability(x), x$y))
  }
  machines <- colnames(x$coefficients)
  machines <- machines %||% NA_character_
  do.call(rbind, lapply(seq_along(machines), \(p) {
    alpha <- x$coefficients[, p]
    alpha <- alpha[alpha != 0]
    data.frame(machine = machines[p], term = c("(Intercept)", names(alpha)),
               estimate = c(x$intercept[p], alpha), row.names = NULL)
  }))
}

fit_facts.bag_smm <- function(x) {
  c(list(
    nobs = x$n, type = x$type,
    classes = if (x$type == "classification") length(x$levels) else NA_integer_,
    support = length(x$support), cost = x$cost, nu = x$nu, epsilon = x$epsilon,
    ridge = x$ridge, error = fit_error(x), score = x$cv$score[x$cv$chosen],
    folds = if (is.null(x$folds)) NA_integer_ else max(x$folds)
  ), fit_facts.bag_gram(x$gram)[-1L])
}

fit_values.bag_smm <- function(x, newdata = NULL) {
  decision <- smm_decision(x, newdata)
  answer <- smm_answer(x, decision)
  said <- if (is.null(x$levels)) {
    data.frame(.fitted = answer)
  } else {
    data.frame(.class = answer, if (ncol(decision) == 1L) {
      list(.decision = decision[, 1L])
    } else {
      prefixed(decision, ".decision_")
    }, check.names = FALSE)
  }
  if (is.null(newdata)) {
    if (is.null(x$levels)) said$.resid <- x$y - x$fitted
    said$.loo <- x$loo
    said$.support <- rownames(decision) %in% x$support
  }
  said
}

fit_columns.bag_smm <- function(x, newdata, added) {
  columns <- data.frame(bag = rownames(added))
  if (is.null(newdata)) {
    columns$n <- unname(x$gram$sizes)
    columns$y <- unname(x$y)
  }
  columns
}

#' @export
fitted.bag_smm <- function(object, ...) {
  check_dots(...)
  object$fitted
}

#' @export
residuals.bag_smm <- function(object, ...) {
  check_dots(...)
  if (!is.numeric(object$y)) {
    stop_input("'object' must be a regression to have residuals, not of type ",
               "\"", object$type, "\"")
  }
  object$y - object$fitted
}

# A fit to the same bags and the same y keeps the folds, so that both fits can
# be compared. The kernel is chosen again, unless it came with the bags.
fit_request.bag_smm <- function(x, changes) {
  names <- names(changes)
  ours <- names %in% setdiff(names(smm_arguments$kinds), "bags")
  arguments <- x$arguments
  same <- !any(c("bags", "id") %in% names)
  if (same) {
    arguments$y <- x$y
    if (!any(c("y", "type") %in% names) && !is.null(x$folds)) {
      arguments$folds <- unname(x$folds)
    }
  }
  asked <- change_request(arguments, changes[ours])
  others <- changes[!ours]
  g <- x$gram
  if (same && x$on_gram && !length(others)) {
    asked$bags <- g
    return(structure(asked, kept = character()))
  }
  if (!x$on_gram && !stores_gram(g$embedding$sample) &&
        !"kernel" %in% names(others)) {
    others["kernel"] <- list(g$arguments$kernel)
  }
  bags <- request_bags(g, others)
  bags[names(asked)] <- asked
  structure(bags, kept = if (same) character())
}
