#' Support measure machines
#'
#' Classification, regression and detection of novelties where each observation
#' is a sample (a bag): support vector machines and ridge regression on the
#' kernel between distributions of [bag_gram()].
#'
#' With H the M by M matrix of `level2` kernel values of the bags, all machines
#' have the form \eqn{f(b) = \sum_a \alpha_a H_{ab} + c}{f(b) = sum_a alpha_a
#' H_ab + c}.
#' \describe{
#'   \item{`"classification"`}{C-support vector machines, one for each pair of
#'     classes; a bag's class is that which most of them vote for (the first of
#'     several). Default for a factor, characters or logical values.}
#'   \item{`"regression"`}{support vector regression: errors up to `epsilon` are
#'     free, beyond they cost `cost` each. y is standardized on the way, so that
#'     `epsilon` is in standard deviations. Default for numbers.}
#'   \item{`"ridge"`}{kernel ridge regression with a free intercept:
#'     \eqn{\|y - H\alpha - c\|^2 + \lambda\alpha'H\alpha}{|y - H alpha - c|^2
#'     + lambda alpha'H alpha} is smallest. That is \eqn{\alpha = (H^c + \lambda
#'     I)^{-1}(y - \bar y)}{alpha = (Hc + lambda I)^(-1) (y - mean y)} with the
#'     centered matrix \eqn{H^c}{Hc}; \eqn{\lambda}{lambda} is `ridge`.}
#'   \item{`"novelty"`}{the one-class machine, without y: f is positive where
#'     normal bags are, and at most about a share \eqn{\nu}{nu} of those of the
#'     fit is outside. Default where there is no y.}
#' }
#' The support vector machines are solved by \pkg{kernlab} (`ksvm()`), which
#' must be installed; ridge regression needs no other package.
#'
#' @section Choice of parameters: What is given as one number is taken. Else
#' `cost` is chosen from `c(0.1, 1, 10, 100, 1000)`, \eqn{\nu}{nu} from `c(0.05,
#' 0.1, 0.2)`, and the bandwidth of the points' kernel, where that is open, from
#' 1/4, 1/2, 1, 2 and 4 times the median distance, all together, by
#' cross-validation over bags. Several numbers are tried in the same way. Folds
#' are drawn by R's generator, in the classes' shares. The score is the share of
#' wrong classes, or the mean squared error; of equal scores the bandwidth
#' nearest to the median distance is taken, and then the smallest cost.
#'
#' For ridge regression the squared error of the exact leave-one-out residuals
#' takes the place of cross-validation, in closed form and with the intercept
#' fitted anew: \eqn{\alpha_i/([(H^c + \lambda I)^{-1}]_{ii} - 1/(M\lambda))}{
#' alpha_i/([(Hc + lambda I)^(-1)]_ii - 1/(M lambda))} (Cawley and Talbot).
#'
#' The score in `cv` is for `"regression"` in units of the variance of y.
#' `bandwidth2` is the median distance of the bags unless it is given; `"cv"`
#' chooses it, too, among 1/8, 1/4, 1/2, 1 and 2 times that.
#'
#' For novelty the score is the share of left-out bags that are refused. Chosen
#' is the narrowest kernel whose share is at most \eqn{\nu +
#' 2\sqrt{\nu(1-\nu)/M}}{nu + 2 sqrt(nu (1 - nu)/M)} for one of the
#' \eqn{\nu}{nu}, and the smallest such \eqn{\nu}{nu} (Tax and Müller); where
#' `level2` sees distances that is `bandwidth2`, at the median distance of the
#' points.
#'
#' The embeddings know no y and are made once for each bandwidth from all bags.
#' The score of the chosen parameters is a little too good for new bags, with a
#' `target` much too good, as a warning says: hold out bags of your own.
#' @section Cost: That of [bag_gram()] for each bandwidth, and a machine for
#' each fold and each combination: kernlab's solver takes \eqn{O(M^2)}{O(M^2)}
#' to \eqn{O(M^3)}{O(M^3)} time. For ridge regression one eigendecomposition of
#' H for each bandwidth. Memory as for [bag_gram()].
#'
#' @param bags The bags, as for [bag_gram()], or a result of it; then nothing
#'   that belongs to the embedding is taken.
#' @param y What is known of each bag: a factor or numbers, in the order of the
#'   bags or with their names (necessary where a vector `id` has them in another
#'   order than its sorted levels); `NULL` for novelty.
#' @param ... Arguments of [bag_gram()] by name: `kernel`, `estimator` (with its
#'   own), `level2`, `target`, `id`, `scale`, `degree`, `offset`; in the formula
#'   method also those of the default method. `folds` are those of the machine;
#'   an estimator that has some takes them in its object, as in `est_stack(folds
#'   = Inf)`.
#' @param type What is to be learned, see Details; `NULL` for the default of y.
#' @param cost,nu,ridge One number, several to choose among (`ridge`: one), or
#'   `NULL`, see below. `ridge` is in units of H.
#' @param epsilon Half the width of the tube, in standard deviations of y; 0.1
#'   by default.
#' @param bandwidth Of the points' kernel, where that is open: `"cv"` (default),
#'   `"median"`, one number or several to choose among.
#' @param bandwidth2 Of `level2`, where that is `"rbf"` or `"laplace"`:
#'   `"median"`, a number or `"cv"`; `NULL` for `"median"`, for novelty `"cv"`.
#' @param folds The number of folds, or the fold of each bag; not looked at
#'   where nothing is chosen.
#' @param id In the formula method the bag of each row, found in `data` as
#'   `weights` is by [lm()].
#' @param progress Show how far the choice has come?
#' @param formula `y ~ a + b`, with the value of each row's bag on the left; `~
#'   a + b` for novelty.
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return An object of class `c("bag_smm", "smm")`, a list with
#' \item{type, y, levels}{what was learned; y named by the bags}
#' \item{gram}{the [bag_gram()] of the bags, with the chosen kernel}
#' \item{coefficients, intercept}{\eqn{\alpha}{alpha}, a row for each bag, a
#'   column for each machine; c}
#' \item{support}{names of the bags with \eqn{\alpha \ne 0}{alpha != 0}}
#' \item{cost, nu, epsilon, ridge}{those used}
#' \item{cv}{what was tried: a data frame with `bandwidth`, `factor` (of the
#'   median distance), the parameter, `score`, its standard error `se`,
#'   `chosen`; `NULL` if nothing was chosen}
#' \item{folds}{the fold of each bag, numbered from 1}
#' \item{fitted, decision}{classes or values, and decision values, of the bags
#'   of the fit}
#' \item{loo}{for ridge regression the leave-one-out predictions}
#' \item{kernel, n}{the kernel of the points, the number of bags}
#' \item{problem}{`center` and `unit` of y, by which it was standardized}
#' \item{arguments, terms, on_gram}{what was given}
#' @section Methods: `predict()` of new bags (see [predict.bag_smm()]),
#' `plot()`, `summary()`, `coef()`, `fitted()`, `residuals()`, and `update()`,
#' which fits again with other arguments, those of [bag_gram()] and `bags`, `y`
#' too, on the same folds where these are not drawn anew.
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
#'
#' Tax, D. M. J. and Müller, K.-R. (2004). A consistency-based model selection
#' for one-class classification. *ICPR* 17. \doi{10.1109/ICPR.2004.1334542}
#' @seealso [predict.bag_smm()], [plot.bag_smm()]; [kme_fda()] for discriminants
#'   and [kme_pca()] for components of bags.
#' @examples
#' # Which kind is a sample of? Two kinds that differ in spread alone
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
#' fit
#' summary(fit)
#' plot(fit)
#' predict(fit, list(new = make(2)))
#' predict(fit, list(new = make(2)), type = "decision")
#' @export
smm <- function(bags, ...) {
  UseMethod("smm")
}

cost_grid <- 10^(-1:3)
nu_grid <- c(0.05, 0.1, 0.2)
smm_factors <- 2^(-2:2)
level_factors <- 2^(-3:1)
usual_epsilon <- 0.1

#' @rdname smm
#' @export
smm.default <- function(bags, y = NULL, ..., type = NULL, cost = NULL,
                        nu = NULL, epsilon = NULL, ridge = NULL,
                        bandwidth = NULL, bandwidth2 = NULL, folds = 10,
                        progress = interactive()) {
  if (missing(bags)) stop_input("'bags' must be given")
  check_flag(progress, "progress")
  plan <- plan_machine(bags, ..., bandwidth = bandwidth,
                       bandwidth2 = bandwidth2, novelty = is.null(y))
  problem <- read_problem(y, type, names(plan$sizes), plan$ordered)
  grid <- read_grid(problem, list(cost = cost, nu = nu, epsilon = epsilon,
                                  ridge = ridge))
  if (problem$type != "ridge") need_kernlab()
  if (length(folds) == 1L) folds <- check_count(folds, "folds", 2L)
  choosing <- nrow(grid) * length(plan$kernels) * length(plan$factors) > 1L
  of <- if (choosing && problem$type != "ridge") {
    bag_folds(folds, problem, length(plan$sizes))
  }
  if (!is.null(plan$target) && (choosing || problem$type == "ridge")) {
    warn_kernmean("with 'target' each bag was estimated with the help of all ",
                  "others, left-out ones too: scores of left-out bags are too ",
                  "good, and new bags may do clearly worse", kind = "target")
  }
  found <- search_machine(plan, problem, grid, of, progress)
  fit <- new_smm(found, problem, of, list(
    type = type, cost = cost, nu = nu, epsilon = epsilon, ridge = ridge,
    bandwidth = bandwidth, bandwidth2 = bandwidth2,
    folds = if (length(folds) == 1L) folds else of
  ))
  fit$on_gram <- !is.null(plan$g)
  fit
}

# A plan, see plan_bags(), with the kernels to be tried and the factors of the
# bandwidth of level 2; of a matrix that was given, list(g, sizes, ordered,
# kernels, factors: nothing to be chosen).
plan_machine <- function(bags, ..., bandwidth, bandwidth2, novelty) {
  if (inherits(bags, "bag_gram")) {
    given <- c(list(bandwidth = bandwidth, bandwidth2 = bandwidth2), list(...))
    given <- Filter(Negate(is.null), given)
    if (length(given)) {
      name <- c(names(given), "")[1L]
      stop_input(if (nzchar(name)) paste0("'", name, "'") else "an argument",
                 " must not be given when 'bags' is a result of bag_gram(), ",
                 "to which it belongs")
    }
    return(list(g = bags, sizes = bags$sizes, ordered = TRUE,
                target = bags$target, kernels = list(NULL), factors = 1))
  }
  tried <- identical(bandwidth2, "cv")
  plan <- plan_bags(bags, ..., bandwidth2 = if (!tried) bandwidth2)
  distances <- !is.null(plan$level$bandwidth)
  if (tried && !distances) {
    stop_input("'bandwidth2' must not be given for level2 = \"",
               plan$level$type, "\"; it is for \"rbf\" and \"laplace\"")
  }
  # Without y, what sees distances of bags is chosen by their width.
  tried <- tried || novelty && is.null(bandwidth2) && distances
  plan$factors <- if (tried) level_factors else 1
  kernel <- plan$sample$kernel
  if (!is.null(bandwidth)) {
    bandwidth <- check_choice_of(bandwidth, bags, plan$arguments$kernel, "cv",
                                 "bags")
  } else if (plan$open && !(novelty && tried)) {
    bandwidth <- "cv"
  }
  plan$kernels <- tried_kernels(kernel, bandwidth, "cv", smm_factors)
  plan$median <- kernel$bandwidth
  plan
}

#' @rdname smm
#' @export
smm.formula <- function(formula, data = NULL, subset, na.action, id, ...) {
  check_formula(formula, data)
  if ("y" %in% ...names()) {
    stop_input("'y' must not be given with a formula, whose left side it is")
  }
  if (missing(id)) {
    stop_input("'id' must be given with a formula: the bag of each row")
  }
  check_dot(formula)
  call <- match.call(expand.dots = FALSE)
  # A name in quotes is that of a column.
  if (is.character(call$id)) call$id <- as.name(call$id)
  # A dot leaves out the columns of the id, unless the formula names them.
  named <- setdiff(all.vars(call$id), all.vars(formula))
  others <- data_without(data, named)
  layout <- formula_terms(formula, others)
  answered <- attr(layout, "response") > 0L
  if (answered) check_left(layout)
  frame <- formula_frame(call, layout, data, missing(na.action),
                         parent.frame())
  layout <- attr(frame, "terms")
  id <- check_id(frame[["(id)"]], nrow(frame))
  y <- if (answered) bag_answers(frame[[1L]], id, names(frame)[1L])
  points <- frame[setdiff(seq_along(frame),
                          c(if (answered) 1L, match("(id)", names(frame))))]
  layout <- stats::delete.response(layout)
  fit <- smm.default(formula_matrix(layout, structure(points, terms = layout)),
                     y, id = id, ...)
  left <- terms(stats::as.formula(call("~", call$id), environment(formula)))
  remember(fit$gram, terms = keep_constants(layout, data),
           response = keep_constants(left, data))
  fit$terms <- fit$gram$terms
  fit
}

# The value of each bag from those of its rows, which must agree.
bag_answers <- function(y, id, name) {
  first <- match(levels(id), id)
  value <- y[first]
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

# --- Reading -----------------------------------------------------------------

# What is to be learned, see smm_fit.R, from y, for bags of these names.
read_problem <- function(y, type, names, ordered) {
  if (!is.null(type)) type <- check_choice(type, smm_types, "type")
  if (is.null(y)) {
    if (!is.null(type) && type != "novelty") {
      stop_input("'y' must be given for type = \"", type, "\"")
    }
    return(list(type = "novelty"))
  }
  if (identical(type, "novelty")) {
    stop_input("'y' must not be given for type = \"novelty\", which learns ",
               "from normal bags alone")
  }
  y <- order_answers(y, names, ordered)
  classes <- is.factor(y) || is.character(y) || is.logical(y)
  if (is.null(type)) {
    type <- if (classes) "classification" else "regression"
    if (!classes && length(y) > 2L && length(unique(y)) == 2L) {
      warn_kernmean("'y' has two values only and is taken as numbers; ",
                    "factor(y) makes classes of them")
    }
  }
  if (type == "classification") {
    return(list(type = type, y = read_classes(y)))
  }
  if (!is.numeric(y)) {
    stop_input("'y' must be numeric for type = \"", type, "\", not ",
               describe(y))
  }
  if (length(y) < 3L) {
    stop_input("'bags' must be at least 3 for type = \"", type, "\", not ",
               length(y))
  }
  if (type == "ridge") {
    return(list(type = type, y = as.double(y), center = 0, unit = 1))
  }
  unit <- stats::sd(y)
  if (!(unit > 0)) unit <- 1
  list(type = type, y = (as.double(y) - mean(y)) / unit, center = mean(y),
       unit = unit)
}

# What each type leaves open, first what is chosen.
smm_parameters <- list(classification = "cost",
                       regression = c("cost", "epsilon"), novelty = "nu",
                       ridge = "ridge")
smm_types <- names(smm_parameters)

# y in the order of the bags, unnamed.
order_answers <- function(y, bags, ordered) {
  m <- length(bags)
  if (!is.atomic(y) || length(dim(y)) > 1L) {
    stop_input("'y' must be a factor or a vector, not ", describe(y))
  }
  if (length(y) != m) {
    stop_input("'y' must have one value for each of the ", m, " bags, not ",
               length(y))
  }
  absent <- sum(is.na(y))
  if (absent) {
    stop_input("'y' must have no missing values, not ", absent, " NA")
  }
  if (is.numeric(y)) check_finite(as.vector(y), "y")
  given <- names(y)
  if (!is.null(given)) {
    if (anyDuplicated(given) || !setequal(given, bags)) {
      # Bags without names of their own go by position.
      if (ordered && identical(bags, as.character(seq_len(m))) &&
            !any(given %in% bags)) {
        return(if (is.factor(y)) unname(y) else as.vector(unname(y)))
      }
      stop_input("'y' must have the names of the bags, or none; missing: ",
                 shorten(paste0("'", setdiff(bags, given), "'")))
    }
    y <- y[match(bags, given)]
  } else if (!ordered) {
    stop_input("'y' must have the names of the bags, whose order is another ",
               "than that of their rows: names(y) <- the id of each")
  }
  if (is.factor(y)) unname(y) else as.vector(y)
}

read_classes <- function(y) {
  y <- as.factor(y)
  # The order of classes is of no use to machines for pairs.
  y <- factor(y, levels(y), ordered = FALSE)
  empty <- setdiff(levels(y), as.character(y))
  if (length(empty)) {
    warn_kernmean("'y' has classes without bags, which are left out: ",
                  shorten(paste0("'", empty, "'")))
    y <- droplevels(y)
  }
  if (nlevels(y) < 2L) {
    stop_input("'y' must have at least 2 classes, not only '", levels(y), "'")
  }
  few <- levels(y)[tabulate(y, nlevels(y)) < 2L]
  if (length(few)) {
    stop_input("'y' must have at least 2 bags in each class, not 1 in ",
               shorten(paste0("'", few, "'")))
  }
  y
}

# What is tried, a row for each: a data frame of the parameters of the type.
read_grid <- function(problem, given) {
  takes <- smm_parameters[[problem$type]]
  given <- Filter(Negate(is.null), given)
  wrong <- setdiff(names(given), takes)
  if (length(wrong)) {
    stop_input("'", wrong[1L], "' must not be given for type = \"",
               problem$type, "\"",
               if (is.null(problem$y)) ", which is that without 'y'")
  }
  switch(problem$type,
    classification = data.frame(cost = check_candidates(given$cost, "cost",
                                                     cost_grid)),
    regression = data.frame(
      cost = check_candidates(given$cost, "cost", cost_grid),
      epsilon = if (is.null(given$epsilon)) usual_epsilon else
        check_number(given$epsilon, "epsilon")
    ),
    novelty = data.frame(nu = check_candidates(given$nu, "nu", nu_grid, 1)),
    ridge = data.frame(ridge = if (is.null(given$ridge)) NA_real_ else
      check_number(given$ridge, "ridge", positive = TRUE))
  )
}

check_candidates <- function(x, name, usual, most = Inf) {
  if (is.null(x)) {
    return(usual)
  }
  if (!is.numeric(x) || !length(x) || !all(is.finite(x) & x > 0 & x <= most)) {
    bad <- if (is.numeric(x)) x[!is.finite(x) | x <= 0 | x > most]
    stop_input("'", name, "' must be positive numbers",
               if (is.finite(most)) paste(" of at most", most), ", not ",
               if (length(bad)) format(bad[1L]) else describe(x))
  }
  sort(unique(as.double(x)))
}

need_kernlab <- function() {
  if (!requireNamespace("kernlab", quietly = TRUE)) {
    stop_kernmean("package", "support vector machines need the package ",
                  "'kernlab', which is not installed; install.packages(",
                  "\"kernlab\") installs it, type = \"ridge\" does without")
  }
}

# --- The choice --------------------------------------------------------------

# list(g, machine, par: the row of the grid, cv: what was tried, or NULL).
search_machine <- function(plan, problem, grid, folds, progress) {
  kernels <- plan$kernels
  m <- length(plan$sizes)
  make <- \(i) if (is.null(plan$g)) make_bags(plan, kernels[[i]]) else plan$g
  tried <- expand.grid(level = plan$factors, kernel = seq_along(kernels))
  if (nrow(tried) == 1L && is.null(folds) && !anyNA(grid)) {
    g <- make(1L)
    return(list(g = g, machine = fit_gram(g, problem, grid), par = grid))
  }
  made <- NULL
  rows <- lapply_shown(seq_len(nrow(tried)), \(i) {
    # One fold over the points for all of level 2.
    if (tried$level[i] == plan$factors[1L]) made <<- make(tried$kernel[i])
    g <- widen_level(made, tried$level[i])
    data.frame(
      tried[i, ], bandwidth = single_number(g$embedding$sample$kernel),
      bandwidth2 = c(g$level2$bandwidth, NA_real_)[1L],
      score_machines(g, problem, grid, folds), row.names = NULL
    )
  }, progress && nrow(tried) * m > shown_from)
  table <- do.call(rbind, rows)
  chosen <- choose_row(table, problem$type, m, plan$median)
  g <- widen_level(make(table$kernel[chosen]), table$level[chosen])
  par <- grid[1L, , drop = FALSE]
  for (name in intersect(names(par), names(table))) {
    par[[name]] <- table[[name]][chosen]
  }
  table$chosen <- seq_len(nrow(table)) == chosen
  if (is.numeric(plan$median) && length(plan$median) == 1L) {
    table$factor <- table$bandwidth / plan$median
  }
  kept <- c("bandwidth", "factor", if (length(plan$factors) > 1L) "bandwidth2",
            "cost", "nu", "ridge", "score", "se", "chosen")
  list(g = g, machine = fit_gram(g, problem, par), par = par,
       cv = table[intersect(kept, names(table))])
}

single_number <- function(kernel) {
  if (length(kernel$bandwidth) == 1L) kernel$bandwidth else NA_real_
}

new_smm <- function(found, problem, folds, arguments) {
  g <- found$g
  bags <- names(g$sizes)
  machine <- found$machine
  rownames(machine$coefficients) <- bags
  decision <- machine_values(machine, g$K)
  fit <- list(
    type = problem$type, y = problem_answers(problem, bags),
    levels = problem_levels(problem), gram = g,
    coefficients = machine$coefficients, intercept = machine$intercept,
    support = bags[rowSums(machine$coefficients != 0) > 0]
  )
  fit <- c(fit, as.list(found$par), list(
    cv = found$cv, folds = if (!is.null(folds)) stats::setNames(folds, bags),
    problem = problem[c("center", "unit")], n = length(bags),
    kernel = g$embedding$sample$kernel, arguments = arguments,
    decision = decision
  ))
  # The package mildsvm has methods for its own class smm.
  fit <- structure(fit, class = c("bag_smm", "smm"))
  fit$fitted <- smm_answer(fit, decision)
  if (fit$type == "ridge") {
    left <- ridge_residuals(ridge_system(g), problem$y, fit$ridge)
    fit$loo <- stats::setNames(problem$y - left, bags)
  }
  fit
}

problem_answers <- function(problem, bags) {
  y <- problem$y
  if (is.null(y)) {
    return(NULL)
  }
  if (is.numeric(y)) y <- problem$center + problem$unit * y
  stats::setNames(y, bags)
}

problem_levels <- function(problem) {
  switch(problem$type, classification = levels(problem$y),
         novelty = c("normal", "novel"))
}

# Classes or values from decision values.
smm_answer <- function(object, decision) {
  answer <- switch(object$type,
    classification = vote(decision, object$levels),
    novelty = factor(ifelse(is_novel(decision[, 1L]), "novel", "normal"),
                     object$levels),
    object$problem$center + object$problem$unit * decision[, 1L]
  )
  stats::setNames(answer, rownames(decision))
}
