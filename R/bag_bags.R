#' Gram matrix of distributions
#'
#' A kernel between distributions, each known from a sample of its own (a bag):
#' the kernel means of all bags, by any estimator, and a kernel on them. The
#' result is a [gram()], so that methods for points work on distributions.
#'
#' With weights \eqn{\beta}{beta} on the points of bag a and bag b the estimates
#' have the inner product \deqn{G_{ab} = \langle\tilde\mu_a, \tilde\mu_b\rangle
#' = \beta_a'K_{ab}\beta_b,}{G_ab = <mu_a, mu_b> = beta_a' K_ab beta_b,} where
#' \eqn{K_{ab}}{K_ab} has the kernel values of their points. For embeddings that
#' are not weights (see [est_kme()]) it is the inner product of their functions.
#' The estimator is fitted to each bag alone; a bag of one point keeps its KME.
#' All bags have the same bandwidth, by default the median distance of all
#' points.
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
#' Here s is `bandwidth2`. `"median"` is the root of the median of
#' \eqn{R_{ab}}{R_ab} over all pairs of bags; with `"nearest"`, \eqn{2s^2}{2
#' s^2} is the median over bags a of their smallest \eqn{R_{ab}}{R_ab}.
#'
#' @section Bags that help each other: With a `target` the estimates are
#' mixtures of the KMEs of all bags (`vignette("distributions", package =
#' "kernmean")`).
#' \describe{
#'   \item{`"pooled"`}{S-KMSE towards the mean of the KMEs of all other bags.}
#'   \item{`"neighbours"`}{the mean of the KMEs of bag b and of all bags a with
#'     \eqn{u_a + u_b - 2G_{ab} \le s_a^2 + s_b^2}{u_a + u_b - 2 G_ab <= s_a^2 +
#'     s_b^2}, \eqn{u} the estimate of \eqn{\|\mu\|^2}{|mu|^2} without bias and
#'     \eqn{s_b^2 = (\mathrm{mean}_i k(x_i, x_i) - u_b)/n_b}{s_b^2 = (mean k(x,
#'     x) - u_b)/n_b} (Marienwald et al.).}
#'   \item{`"aggregate"`}{\eqn{\sum_a w_{ba}\hat\mu_a}{sum_a w_ba mu_a} with the
#'     weights on the simplex that make \eqn{w'Gw - 2w'g_b}{w'Gw - 2 w'g_b}
#'     smallest, \eqn{g_b = G_{\cdot b}}{g_b = G_.b} but \eqn{u_b} as its own
#'     entry (Blanchard et al.).}
#' }
#' The last two leave a bag of one point as it is.
#'
#' `predict()` gives the values of new bags (rows) with those of the fit
#' (columns), each estimated as if it came alone. Fits on the result, such as
#' [kme_pca()], take these as `newdata`, or the new bags.
#' @section Cost: N points in M bags take O(N^2 d/2) time and O(M^2 + N d)
#' memory. F-KMSE takes an eigenproblem for each bag besides, MKME and MMKME a
#' search over noise, and `"aggregate"` a quadratic program of M weights.
#' @param bags A list of matrices, data frames or vectors with the same columns;
#'   or the points of all in one matrix, data frame or [gram()], with `id`; or a
#'   [kme_sketch()] with groups, which are the bags.
#' @param kernel The kernel of the points, positive definite.
#' @param estimator The estimator of each bag's kernel mean, see [est_kme()]; by
#'   default `"skmse"` with `target = "pooled"`.
#' @param level2 The kernel of the embeddings, see below.
#' @param target `NULL`, `"pooled"`, `"neighbours"` or `"aggregate"`, see below.
#' @param ... Arguments of the estimator's constructor, as in [kme()]; in the
#'   formula method, also those of the default method.
#' @param id The bag of each row, a factor or a vector, or the name of its
#'   column. Bags are in the order of the levels of a factor, else in that in
#'   which they first appear.
#' @param scale The units of the columns over all points, see [units].
#' @param bandwidth2 s, for `"rbf"` and `"laplace"`: `"median"`, `"nearest"` or
#'   a number.
#' @param degree,offset p and c, for `"poly"`.
#' @param formula `id ~ a + b`: the bag of each row, and its columns; or the
#'   other way round, `cbind(a, b) ~ id` or `. ~ id`, as in [mmd_test()].
#' @param data,subset,na.action As in [stats::model.frame()]; missing values are
#'   an error by default.
#' @return A [gram()] of M rows with the names of the bags (class `c("bag_gram",
#' "gram")`), whose further fields are
#' \item{inner}{G, before `level2`}
#' \item{sizes}{the number of points of each bag, named}
#' \item{shrinkage}{a data frame with a row for each bag: `n`; the values that
#'   were chosen, `lambda` (for F-KMSE with `border`: is it at an end of the
#'   range?), `alpha`, `noise` (the mean over columns), `h` and `c` of
#'   smoothing, the shares of a stack's candidates, or `own` (the share of its
#'   own KME in a mixture); `norm2`, the squared norm of its estimate}
#' \item{noise}{variances of MKME and MMKME, M by d}
#' \item{mixing}{with a `target`: coefficients of the KMEs, a row for each bag}
#' \item{level2}{list of `type`, `bandwidth`, `rule`, `degree`, `offset`}
#' \item{target, estimator, embedding}{what new bags need}
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
#' @seealso [glossary]; [smm()], machines on bags; [kme_inner()] for a few
#'   kernel means.
#' @examples
#' # The weights of the chicks of each feed
#' feeds <- bag_gram(feed ~ weight, chickwts, estimator = "skmse")
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

level_title <- c(
  linear = "<mu, nu>", cosine = "<mu, nu>/(|mu| |nu|)",
  rbf = "exp(-|mu - nu|^2/(2 s^2))", laplace = "exp(-|mu - nu|/s)",
  poly = "(<mu, nu> + c)^p"
)
sees_distances <- \(level2) level2 %in% c("rbf", "laplace")

#' @rdname bag_gram
#' @export
bag_gram.default <- function(bags, kernel = kernel_rbf(), estimator = "kme",
                             level2 = c("linear", "cosine", "rbf", "laplace",
                                        "poly"),
                             target = NULL, ..., id = NULL, scale = FALSE,
                             bandwidth2 = "median", degree = 2, offset = 1) {
  asked <- request(bag_arguments, dots = TRUE)
  make_bags(new_bag_plan(asked, ...))
}

bag_arguments <- door_table(
  "bag_gram.default", bags = anything, kernel = unless_given(a_kernel),
  estimator = unless_given(anything), level2 = choice(names(level_title)),
  target = maybe(choice("pooled", "aggregate", "neighbours")), id = anything,
  scale = unless_given(a_scale),
  bandwidth2 = maybe(number(open = TRUE), "median", "nearest"),
  degree = count(), offset = number(),
  rules = list(
    when(\(a) isFALSE(sees_distances(a$level2)), bandwidth2 = NULL,
         reason = "unless 'level2' is \"rbf\" or \"laplace\""),
    when(\(a) !identical(a$level2, "poly"), degree = NULL, offset = NULL,
         reason = "unless 'level2' is \"poly\"")
  ),
  aside = c("bags", "estimator", "id"), units = c("bags", "id"),
  hints = c(kernel2 = "is called 'level2' here")
)

# The plan of bags for smm(). It takes the arguments of bag_gram(), but smm()
# makes the Gram matrices later, one for each kernel.
plan_bags <- bag_gram.default
body(plan_bags) <- quote(new_bag_plan(request(bag_arguments, dots = TRUE), ...))

# How a Gram matrix of bags is to be made:
#   sample      the sample of all points, bag after bag, with its kernel
#   sizes       number of points of each bag, named
#   ordered     do bags come in the order of their rows?
#   embedding   the embedding in place of these, where it is known
#   layout      how the data were read, and new data will be
#   estimator   the estimator
#   target      how bags borrow from each other, or NULL
#   level       the kernel of embeddings: type, bandwidth, degree, offset
#   arguments   the stored request
new_bag_plan <- function(asked, ...) {
  target <- asked$target
  usual <- if (identical(target, "pooled")) est_skmse() else est_kme()
  estimator <- read_estimator(asked$estimator %||% usual$name, ...)
  if (!is.null(estimator$target)) {
    stop_input("'estimator' must have no target of its own for bags; the ",
               "argument 'target' says what they are shrunk towards")
  }
  if (!fits_target(target, estimator)) {
    stop_input("'estimator' must be ",
               if (target == "pooled") "\"skmse\"" else "\"kme\"",
               " for target = \"", target, "\", not ",
               estimator_word(estimator))
  }
  level <- list(type = asked$level2, bandwidth = asked$bandwidth2,
                degree = asked$degree, offset = asked$offset)
  if (sees_distances(level$type) && is.null(level$bandwidth)) {
    level$bandwidth <- "median"
  }
  c(read_bags(asked$bags, asked$id, asked$kernel, asked$scale), list(
    estimator = estimator, target = target, level = Filter(length, level),
    arguments = stored(asked)
  ))
}

# Can a target be used with an estimator? The target "pooled" needs one that
# shrinks the average by a share, other targets need the average itself.
fits_target <- function(target, estimator) {
  is.null(target) || if (target == "pooled") {
    !is.null(est_share(estimator)) && !is_unshrunk(estimator)
  } else {
    is_average(estimator)
  }
}

# The Gram matrix of a plan, with the kernel of its sample or another one.
make_bags <- function(plan, kernel = NULL) {
  if (!is.null(plan$g)) {
    return(plan$g)
  }
  if (!is.null(kernel)) plan$sample$kernel <- kernel
  embedding <- plan$embedding %||%
    embed_bags(plan$sample, plan$sizes, plan$estimator, plan$target)
  new_bag_gram(embedding, plan$level, plan$arguments, plan$layout)
}

#' @rdname bag_gram
#' @export
bag_gram.formula <- function(formula, data = NULL, subset, na.action, ...) {
  read <- read_sides(c(id = "bags", x = "numbers"), example = "id ~ a + b")
  bag_gram.default(read$x, id = structure(
    read$id, layout = read[c("layout", "na.action")]
  ), ...)
}

# --- Reading bags ------------------------------------------------------------

# How the data were read, so that new data are read alike: the `layout` of a
# formula with its `na.action`, or the `column` that names the bags.
layout_of <- function(g) {
  Filter(length, mget(c("layout", "na.action", "column"),
                      g, ifnotfound = list(NULL)))
}

# The fields of a bag plan that say what the bags are.
read_bags <- function(bags, id, kernel, scale) {
  layout <- attr(id, "layout")
  if (inherits(bags, "bag_embedding")) {
    return(list(embedding = unclass(bags), layout = layout))
  }
  if (brings_kernel(bags)) {
    sample <- read_sample(bags, kernel, scale = scale, name = "bags")
    if (!is.null(sample$sketch)) {
      if (!is.null(id) || is.null(bags$groups)) {
        stop_input("'bags' must be a sketch with groups, which are the bags",
                   if (!is.null(id)) ", and 'id' not be given")
      }
      return(list(sample = sample, sizes = group_sizes(bags), ordered = TRUE))
    }
    check_rows(sample)
    if (is.null(id)) {
      stop_input("'id' must be given when 'bags' is a gram: the bag of each ",
                 "point")
    }
    rows <- sort_rows(id, sample$n)
    if (is.unsorted(rows$order)) sample <- sample_take(sample, rows$order)
  } else {
    rows <- gather_bags(bags, id)
    kernel <- kernel %||% kernel_rbf()
    check_definite(kernel)
    sample <- fit_sample(rows$x, kernel, scale, "bags")
    if (!is.null(rows$column)) layout <- list(column = rows$column)
  }
  c(list(sample = sample, layout = layout), rows[c("sizes", "ordered")])
}

# A list of x, the points bag after bag; sizes, the numbers of points; ordered,
# as in a bag plan; and column, the name of the column that names the bags.
# `bags` is a list of bags, or has the rows of all, and `id` the bag of each
# row. New bags must have the columns of `like`; data frames are read by the
# layout.
gather_bags <- function(bags, id, name = "bags", like = NULL, layout = NULL) {
  several <- is_plain_list(bags)
  if (several && !is.null(id)) {
    stop_input("'id' must not be given when '", name, "' is a list of bags")
  }
  if (!several && is.null(id)) {
    stop_input("'", name, "' must be a list of bags, or come with 'id', the ",
               "bag of each row, not ", describe(bags), " alone")
  }
  split <- split_id(id, bags)
  bags <- split$x
  if (!is.null(layout)) {
    one <- \(bag) {
      if (is.data.frame(bag)) read_again(layout, bag, "x") else bag
    }
    bags <- if (several) lapply(bags, one) else one(bags)
  }
  if (several) {
    return(c(bind_bags(bags, like, name), list(ordered = TRUE)))
  }
  x <- if (is.null(like)) check_data(bags, name) else check_newdata(bags, like)
  rows <- sort_rows(split$id, nrow(x), new = !is.null(like))
  rownames(x) <- NULL
  c(list(x = take_rows(x, rows$order), column = split$column), rows)
}

# The id of each row and the points x. If `id` names a column of x, it is taken
# out of x, and `column` is its name.
split_id <- function(id, x) {
  if (!is.character(id) || length(id) != 1L || is_plain_list(x)) {
    return(list(id = id, x = x))
  }
  if (!id %in% colnames(x)) {
    stop_input("'id' must be the bag of each row or the name of a column, not ",
               describe(id), ", which is none")
  }
  list(id = x[, id, drop = TRUE], x = take_columns(x, colnames(x) != id),
       column = id)
}

# The points x of a list of bags, bag after bag, and their sizes. The columns
# are those of the first bag, or of `like`.
bind_bags <- function(bags, like = NULL, name = "bags") {
  if (!length(bags)) {
    stop_input("'", name, "' must hold at least one bag, not none")
  }
  labels <- vapply(seq_along(bags),
                   \(i) element_label(names(bags), i, name), "")
  of_fit <- is.null(like)
  first <- if (of_fit) check_data(bags[[1L]], labels[1L]) else like
  points <- Map(\(bag, label) {
    # Columns are matched by their names, and none may be left over.
    extra <- if (of_fit && !is.null(colnames(first))) {
      setdiff(colnames(bag), colnames(first))
    }
    if (length(extra)) {
      stop_input("'", label, "' must have the columns of the first bag, ",
                 shorten(colnames(first)), ", and no others, not ",
                 shorten(colnames(bag)))
    }
    if (is.null(dim(bag))) bag <- check_data(bag, label)
    check_newdata(bag, first, label, if (of_fit) "the first bag" else "the fit")
  }, unname(bags), labels)
  x <- bind_rows(points)
  dimnames(x) <- if (!is.null(colnames(first))) list(NULL, colnames(first))
  list(x = x, sizes = stats::setNames(vapply(points, nrow, 1L),
                                      bag_names(bags)))
}

# The names of bags; a bag without a name is called by its number.
bag_names <- function(bags) {
  names <- names2(bags)
  bare <- which(is.na(names) | !nzchar(names))
  names[bare] <- bare
  if (anyDuplicated(names)) {
    stop_input("the names of bags must differ; two are named '",
               names[anyDuplicated(names)], "'")
  }
  names
}

# The bag of each row as a factor. The levels of a factor keep their order;
# other values become levels in the order in which they first appear. New bags
# need not have all levels.
check_id <- function(id, n, new = FALSE) {
  check_labels(id, n, "id", "rows")
  if (is.double(id) && anyDuplicated(id) == 0L && n > 1L &&
        any(id != round(id))) {
    stop_input("'id' must name bags, not be ", n, " numbers that all differ")
  }
  if (!is.factor(id)) {
    names <- as.character(id)
    return(factor(names, unique(names)))
  }
  if (new) droplevels(id) else drop_empty(id, "id", "points")
}

# A list of order, the row numbers bag after bag; sizes, the numbers of points;
# and ordered: do the bags first appear in the order of the levels, and are
# these the levels of a factor or sorted? If not, values without names cannot
# safely be matched to the bags by position.
sort_rows <- function(id, n, new = FALSE) {
  bag <- check_id(id, n, new)
  number <- as.integer(bag)
  list(order = order(number), sizes = c(table(bag)),
       ordered = !is.unsorted(unique(number)) &&
         (is.factor(id) || !is.unsorted(unique(id))))
}

# --- The matrix --------------------------------------------------------------

new_bag_gram <- function(embedding, level, arguments, layout) {
  level <- fit_level(level, embedding$inner)
  names <- names(embedding$sizes)
  k <- level_values(level, embedding$inner)
  dimnames(k) <- dimnames(embedding$inner) <- list(names, names)
  g <- new_gram(k, class = "bag_gram")
  by_bag <- \(x, columns) {
    if (!is.null(x)) structure(t(x), dimnames = list(names, columns))
  }
  list2env(c(list(
    inner = embedding$inner, sizes = embedding$sizes,
    shrinkage = embedding$table, level2 = level, target = embedding$target,
    estimator = embedding$estimator, arguments = arguments,
    embedding = embedding,
    noise = by_bag(embedding$noise, colnames(embedding$sample$x)),
    mixing = by_bag(embedding$mixing, names)
  ), layout), g)
  seal_gram(g)
}

# The kernel of embeddings, whose bandwidth is now a number, computed from
# distances of the bags, and the rule that gave this number.
fit_level <- function(level, inner) {
  if (!is.character(level$bandwidth)) {
    return(level)
  }
  nearest <- level$bandwidth == "nearest"
  apart <- level_distances(inner)
  level$rule <- if (nearest) "nearest bags" else "median distance of the bags"
  upper <- apart[upper.tri(apart)]
  distances <- if (nearest) nearest_distances(apart) / 2
  if (!any(distances > 0)) distances <- upper
  kept <- positive_distances(distances)
  if (!any(upper > 0)) {
    level$rule <- "all bags are equal"
    kept <- 1
  } else if (length(kept) < length(distances)) {
    level$rule <- paste(level$rule, "that differ")
  }
  level$bandwidth <- sqrt(stats::median(kept))
  level
}

# The squared distance of each bag from the nearest other one.
nearest_distances <- function(apart) {
  diag(apart) <- Inf
  apply(apart, 1L, min)
}

# The squared distances of embeddings, from inner products and squared norms.
level_distances <- function(inner, left = diag(inner), right = left) {
  sums <- outer(left, right, `+`)
  apart <- check_result(sums - 2 * inner, "a distance of two bags", "the bags")
  # Smaller squared distances are rounding errors.
  apart[apart < 1e-14 * sums] <- 0
  apart
}

# The kernel of embeddings at inner products and squared norms.
level_values <- function(level, inner, left = diag(inner), right = left) {
  # An embedding of norm 0 has no direction, and its cosine with all is 0.
  inverse <- \(norm2) ifelse(norm2 > 0, 1 / sqrt(pmax(norm2, 0)), 0)
  values <- switch(level$type,
    linear = inner,
    cosine = pmax(pmin(inner * outer(inverse(left), inverse(right)), 1), -1),
    rbf = exp(level_distances(inner, left, right) / (-2 * level$bandwidth^2)),
    laplace = exp(-sqrt(level_distances(inner, left, right)) / level$bandwidth),
    poly = (inner + level$offset)^level$degree
  )
  check_result(values, "the kernel of two bags", "the bags")
}

# --- New bags ----------------------------------------------------------------

#' @rdname bag_gram
#' @param object A result of `bag_gram()`.
#' @param newdata New bags: a list, points with `id`, or a data frame with the
#'   column that `id` or the formula named; if the bags were groups of a sketch,
#'   also a sketch with groups on its landmarks. Without it, the bags of the
#'   fit.
#' @export
predict.bag_gram <- function(object, newdata, ..., id = NULL) {
  check_dots(...)
  same_version(object)
  if (missing(newdata)) {
    return(as.matrix(object))
  }
  level_values_at(object, newdata, id)$values
}

# The kernel `values` of new bags with those of the fit, and the `diagonal`, the
# kernel of each with itself.
level_values_at <- function(g, newdata, id = NULL) {
  new <- read_new_bags(g, newdata, id)
  new_bags <- embed_new(g$embedding, new)
  values <- level_values(g$level2, new_bags$inner, new_bags$norm2,
                         unname(diag(g$inner)))
  dimnames(values) <- list(names(new$sizes), names(g$sizes))
  list(values = values, diagonal = vapply(new_bags$norm2, \(norm2) {
    drop(level_values(g$level2, matrix(norm2), norm2))
  }, 1))
}

# New bags: their sizes, and points z in the units of the kernel, or a sketch
# with the bags as groups.
read_new_bags <- function(g, newdata, id) {
  sample <- g$embedding$sample
  if (!is.null(sample$sketch)) {
    new <- sketch_new_bags(sample$sketch, newdata, id)
    return(list(sketch = new, sizes = group_sizes(new)))
  }
  sample_points(sample, "'newdata' must hold kernel values of bags: those of ",
                "the fit are known by kernel values alone")
  if (is.null(id) && !is_plain_list(newdata)) {
    if (is.data.frame(newdata) && !is.null(g$layout)) {
      id <- read_again(g$layout, newdata, "id", hint = paste(
        "; give 'id', or a list() of one data frame"
      ))
    } else if (!is.null(g$column) && g$column %in% colnames(newdata)) {
      id <- g$column
    }
  }
  points <- gather_bags(newdata, id, "newdata", sample_raw(sample), g$layout)
  list(z = unname(scale_points(sample$kernel, points$x)), sizes = points$sizes)
}

# A sketch on the landmarks of `sketch` whose groups are the new bags.
sketch_new_bags <- function(sketch, newdata, id) {
  sketched <- inherits(newdata, "kme_sketch")
  if (sketched) {
    check_same_landmarks(sketch, newdata)
    id <- newdata$groups
  } else if (is_plain_list(newdata)) {
    bags <- lapply(newdata, rows_of_vector)
    sizes <- vapply(bags, NROW, 1L)
    if (!all(sizes > 0L)) stop_input("'newdata' must have rows in each bag")
    id <- rep(bag_names(bags), sizes)
    newdata <- do.call(rbind, unname(bags))
  } else {
    split <- split_id(id %||% sketch$columns$groups, newdata)
    id <- split$id
    newdata <- split$x
  }
  if (is.null(id)) {
    stop_input("'newdata' must be a list of bags, a sketch with groups, or ",
               "come with 'id', the bag of each row")
  }
  if (sketched) {
    return(newdata)
  }
  kme_sketch(newdata, sketch, progress = FALSE, moments = sketch$moments,
             groups = check_id(id, NROW(newdata), new = TRUE),
             bin = sketch$bin,
             na.action = if (sketch$omit) stats::na.omit else stats::na.fail)
}

group_sizes <- function(sketch) {
  stats::setNames(group_numbers(sketch, "n"), sketch$groups)
}

# Fits on a Gram matrix of bags take new bags where other fits on a matrix take
# kernel values.
read_kernel_values.bag_gram <- function(g, newdata) {
  # A data frame or matrix with the column that tells bags apart holds points.
  named <- is.data.frame(newdata) && !is.null(g$layout) ||
    !is.null(g$column) &&
      (is.data.frame(newdata) || g$column %in% colnames(newdata))
  # Rows with as many columns as the points hold points, too.
  points <- identical(NCOL(newdata), ncol(g$embedding$sample$x)) &&
    !identical(colnames(newdata), names(g$sizes))
  if (!is_plain_list(newdata) && !named && !points &&
        !inherits(newdata, "kme_sketch") && NCOL(newdata) == nrow(g$K)) {
    return(NextMethod())
  }
  new_bags <- level_values_at(g, newdata)
  new_points(NULL, values = new_bags$values, diagonal = new_bags$diagonal)
}

# --- Verbs -------------------------------------------------------------------

fit_lines.bag_gram <- function(x, digits) {
  m <- length(x$sizes)
  c(paste0("Gram matrix of ", count_of(m, "distribution"), ", ", m, " x ", m,
           " (", format_bytes(8 * m^2), ")"),
    bag_lines(x, digits))
}

# Lines on the bags and their kernels, for print().
bag_lines <- function(g, digits) {
  sample <- g$embedding$sample
  level <- g$level2
  c(
    paste(c(count_of(length(g$sizes), "bag"), "of",
            paste(unique(range(g$sizes)), collapse = " to "), "points",
            if (knows_points(sample)) {
              c("in", count_of(ncol(sample$x), "column"))
            }), collapse = " "),
    kernel_lines(sample$kernel), describe_bag_means(g, digits),
    paste0("level 2: ", level_title[[level$type]],
           if (!is.null(level$bandwidth)) {
             paste("; s =", format_number(level$bandwidth))
           },
           if (!is.null(level$rule)) paste0(" (", level$rule, ")"),
           if (!is.null(level$degree)) {
             paste0("; c = ", format_number(level$offset), ", p = ",
                    level$degree)
           })
  )
}

# Lines on the estimator of the bags, such as "S-KMSE (simple shrinkage): lambda
# by exact leave-one-out", and on what was chosen.
describe_bag_means <- function(g, digits) {
  table <- g$shrinkage
  open <- setdiff(c("alpha", "lambda", "noise", "h", "own"),
                  names(Filter(length, unclass(g$estimator))))
  chosen <- intersect(open, names(table))[1L]
  c(
    paste("estimator:", format_estimator(g$estimator)),
    if (!is.null(g$target)) paste0("  target = \"", g$target, "\""),
    if (!is.na(chosen)) {
      spread <- stats::quantile(table[[chosen]], c(0, 1, 0.5), na.rm = TRUE)
      spread <- format_number(spread, digits)
      sprintf("  %s from %s to %s, median %s", chosen, spread[1L], spread[2L],
              spread[3L])
    },
    stack_line(g$estimator, table),
    if (any(table$border)) {
      paste("  on the border of the range searched:", sum(table$border))
    }
  )
}

fit_summary.bag_gram <- function(x) {
  c(fit_summary.gram(x), list(shrinkage = x$shrinkage))
}

fit_rows.bag_gram <- function(x, ...) {
  check_dots(...)
  data.frame(bag = names(x$sizes), x$shrinkage, row.names = NULL,
             check.names = FALSE)
}

fit_facts.bag_gram <- function(x) {
  c(list(
    nobs = length(x$sizes), points = sum(x$sizes), estimator = x$estimator$name,
    target = one_word(x$target), level2 = x$level2$type,
    bandwidth2 = x$level2$bandwidth
  ), kernel_columns(x$embedding$sample$kernel))
}

# If only the kernel of embeddings changes, the embeddings are reused.
fit_request.bag_gram <- function(x, changes) {
  asked <- request_bags(x, changes)
  if (all(names(changes) %in% level_arguments)) {
    asked$bags <- structure(x$embedding, class = "bag_embedding")
  }
  asked
}

level_arguments <- c("level2", "bandwidth2", "degree", "offset")

# The request of bag_gram() with changes; the bags stay in their order.
request_bags <- function(g, changes) {
  arguments <- g$arguments
  # A new kernel of embeddings does not take over the parameters of the old one.
  if ("level2" %in% names(changes)) {
    arguments[setdiff(level_arguments, "level2")] <- NULL
  }
  ours <- names(changes) %in% setdiff(names(bag_arguments$kinds), "estimator")
  names(changes)[names(changes) == "bags"] <- "x"
  asked <- fit_request.default(
    list(sample = g$embedding$sample, arguments = arguments), changes[ours]
  )
  names(asked)[names(asked) == "x"] <- "bags"
  same <- !any(c("x", "id") %in% names(changes))
  if (same && is.null(g$embedding$sample$sketch)) {
    asked$id <- structure(factor(rep(names(g$sizes), g$sizes),
                                 names(g$sizes)), layout = layout_of(g))
  } else if (!same && !"x" %in% names(changes)) {
    asked$bags <- NULL
  }
  asked$estimator <- if (!all(ours)) {
    change_estimator(g$estimator, changes[!ours])
  } else if (fits_target(asked$target, g$estimator)) {
    g$estimator
  }
  asked
}

# A line such as "mean shares: KME 0.2, smoothing 0.4 0.7" from a table of bags;
# NULL if the estimator is not a stack.
stack_line <- function(estimator, table) {
  columns <- setdiff(names(table), c("n", "norm2", "border"))
  if (!inherits(estimator, "est_stack") || !length(columns)) {
    return(NULL)
  }
  shares <- sort(colMeans(table[columns], na.rm = TRUE), decreasing = TRUE)
  shares <- shares[shares >= 0.01]
  paste0("  mean shares: ",
         toString(paste(names(shares), format_number(shares, 2L))))
}
