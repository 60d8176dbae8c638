#' Plots of kernel principal components
#'
#' The scores of two components with the groups in color, and the variances.
#'
#' `"scores"` draws the scores of the sample with the shares of variance on the
#' axes; one component is drawn against the index of the points. Of more than
#' 2,000 points an even share is drawn. A fit to a sketch has no scores of its
#' own: those of `newdata` are drawn, without it the variances. Groups have
#' colors (twelve, of which the first eight are the Okabe--Ito palette) and
#' symbols that differ; the legend names twelve of them. Numbers as groups are
#' drawn in colors from dark to light, with a bar that says which stand for
#' which.
#'
#' `"spectrum"` and `screeplot()` draw the variances
#' \eqn{\gamma_j/n}{gamma_j/n} of the leading components, as for
#' [stats::prcomp()].
#'
#' @param x A fit of [kme_pca()].
#' @param y Must be missing, or the `type`.
#' @param type What to draw: for `plot()` `"scores"` or `"spectrum"`, also as
#'   the second argument; for `screeplot()` `"barplot"` or `"lines"`.
#' @param comps Which components to draw: one or two whole numbers; by default
#'   the first two, or the only one. For `"scores"`.
#' @param newdata Points whose scores are drawn in place of those of the sample,
#'   as in [predict()][predict.kme_pca]. For `"scores"`.
#' @param groups `NULL`, or the group of each point: a factor, or a vector of
#'   words, of numbers or of times, these with a color bar. For `"scores"`.
#' @param ... Graphical parameters, as in [plot.kme()]; `col`, `pch`, `cex`,
#'   `bg` and `lwd` are for the points (and the legend is left out where they
#'   change what it says). For `"spectrum"` also `npcs`.
#' @param legend As in [plot.kme()]. For `"scores"`.
#' @param npcs Number of components.
#' @param main The title.
#' @return What was drawn, invisibly: a data frame with the scores of all
#'   points, named by component (`index` first for one component), and `groups`
#'   where they are given; for variances these, with names.
#' @family operators
#' @examples
#' fit <- kme_pca(scale(iris[, 1:4]), ncomp = 3)
#' plot(fit, groups = iris$Species)
#' plot(fit, comps = c(1, 3), groups = iris$Petal.Width)
#' plot(fit, "spectrum")
#' @export
plot.kme_pca <- function(x, y, type = c("scores", "spectrum"), comps = c(1, 2),
                         groups = NULL, ..., newdata = NULL, legend = TRUE) {
  dots <- list(...)
  name <- short_name(substitute(groups))
  picture <- picture_pca(x, if (!missing(y)) y, if (!missing(type)) type,
                         if (!missing(comps)) comps, groups, name, dots$npcs,
                         newdata)
  draw_picture(picture, dots[names(dots) != "npcs"], legend)
}

# comps, groups, npcs: NULL for the default.
picture_pca <- function(object, y = NULL, type = NULL, comps = NULL,
                        groups = NULL, name = NULL, npcs = NULL,
                        newdata = NULL) {
  rows <- !is.null(object$scores) || !is.null(newdata)
  type <- plot_type(c("scores", "spectrum"), y, type,
                    if (rows) "scores" else "spectrum")
  if (type == "scores") {
    if (!is.null(npcs)) {
      stop_input("'npcs' must not be given but for type \"spectrum\"")
    }
    return(picture_scores(object, comps, groups, name, newdata))
  }
  given <- c("comps", "groups", "newdata")[
    c(!is.null(comps), !is.null(groups), !is.null(newdata))
  ]
  if (length(given)) {
    stop_input("'", given[1L], "' must not be given but for type \"scores\"")
  }
  if (is.null(npcs)) picture_scree(object) else picture_scree(object, npcs)
}

picture_scores <- function(object, comps, groups, name, newdata) {
  p <- ncol(object$vectors)
  comps <- if (is.null(comps)) seq_len(min(2L, p)) else check_comps(comps, p)
  scores <- if (is.null(newdata)) own_scores(object) else
    predict(object, newdata)
  n <- nrow(scores)
  groups <- check_groups(groups, n)
  labels <- component_labels(object)[comps]
  found <- data.frame(scores[, comps, drop = FALSE], row.names = NULL)
  one <- length(comps) == 1L
  if (one) {
    found <- cbind(index = seq_len(n), found)
    labels <- c("index", labels)
  }
  xy <- as.matrix(found)
  found$groups <- groups
  groups_picture(pca_heading(object), xy, groups, labels, found,
                 lines_at = c(if (one) NA else 0, 0), name = name,
                 whole = if (one) "x")
}

pca_heading <- function(object) {
  paste0("Kernel PCA", if (!is.null(object$shrinkage)) {
    paste0(" (", operator_label(object$covariance), ")")
  })
}

# "PC1 (34.5% of variance)"
component_labels <- function(object, names = colnames(object$vectors)) {
  shares <- variance_shares(object)
  paste0(names, ifelse(
    is.na(shares), "", sprintf(" (%.1f%% of variance)", 100 * shares)
  ))
}

check_comps <- function(comps, p) {
  ok <- is.numeric(comps) && length(comps) %in% 1:2 && !anyNA(comps) &&
    all(comps %in% seq_len(p)) && !anyDuplicated(comps)
  if (!ok) {
    stop_input(
      "'comps' must be one or two different components from 1 to ", p,
      ", not ", if (is.numeric(comps) && length(comps) %in% 1:3) {
        paste(comps, collapse = ", ")
      } else {
        describe(comps)
      }
    )
  }
  as.integer(comps)
}

#' @rdname plot.kme_pca
#' @importFrom stats screeplot
#' @export
screeplot.kme_pca <- function(x, npcs = min(10, length(x$values)),
                              type = c("barplot", "lines"),
                              main = pca_heading(x), ...) {
  draw_picture(picture_scree(x, npcs, type, main), list(...))
}

picture_scree <- function(object, npcs = min(10, length(object$values)),
                          type = "barplot", main = pca_heading(object)) {
  type <- check_choice(type, c("barplot", "lines"), "type")
  check_graphics_value("main", main)
  npcs <- check_count(npcs, "npcs")
  if (npcs > length(object$values)) {
    stop_input("'npcs' must be at most ", length(object$values), ", the ",
               "components of the fit, not ", npcs)
  }
  shown <- seq_len(npcs)
  variances <- stats::setNames(object$values, colnames(object$vectors))[shown]
  if (type == "barplot") {
    picture <- picture_bars(unname(variances), names(variances), main,
                            "Variances")
    picture$value <- variances
    return(picture)
  }
  new_picture(
    main, "", "Variances",
    list(new_layer("line", x = shown, y = unname(variances)),
         new_layer("points", x = shown, y = unname(variances),
                   style = list(pch = 19, bg = "black"), main = TRUE)),
    variances, ylim = range(0, variances),
    ticks = list(at = shown, labels = names(variances), tick = TRUE)
  )
}
