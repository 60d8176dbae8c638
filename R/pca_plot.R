#' Plots of kernel principal components
#'
#' The scores of two components with the groups in color, and the variances.
#'
#' `"scores"` draws the scores of the sample with the shares of variance on the
#' axes; one component is drawn against the index of the points. Of more than
#' 2,000 points an even share is drawn. Eight groups or fewer have colors of
#' the Okabe--Ito palette, more have a scale from dark to light in the order of
#' the levels (so a numeric variable may hold the groups).
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
#' @param groups `NULL`, or the group of each point: a factor or a vector. For
#'   `"scores"`.
#' @param ... Passed to [plot.default()] (bars: [barplot()]); `col`, `pch`,
#'   `cex`, `bg` and `lwd` are for the points. For `"spectrum"` also `npcs`.
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
                         groups = NULL, ...) {
  type <- plot_type(c("scores", "spectrum"), if (!missing(y)) y,
                    if (!missing(type)) type)
  if (type == "spectrum") {
    if (!missing(comps) || !is.null(groups)) {
      stop_input("'", if (missing(comps)) "groups" else "comps",
                 "' must not be given but for type \"scores\"")
    }
    return(screeplot.kme_pca(x, ...))
  }
  p <- ncol(x$scores)
  comps <- if (missing(comps)) seq_len(min(2L, p)) else check_comps(comps, p)
  groups <- check_groups(groups, x$n)
  labels <- component_labels(x)[comps]
  found <- data.frame(x$scores[, comps, drop = FALSE], row.names = NULL)
  if (length(comps) == 1L) {
    found <- cbind(index = seq_len(x$n), found)
    labels <- c("index", labels)
  }
  draw_groups(as.matrix(found), groups, list(
    xlab = labels[1L], ylab = labels[2L], main = pca_heading(x)
  ), list(...), lines_at = if (length(comps) == 2L) c(0, 0) else c(NA, 0))
  found$groups <- groups
  invisible(found)
}

pca_heading <- function(object) {
  paste0("Kernel PCA", if (!is.null(object$shrinkage)) {
    paste0(" (", operator_label(object$covariance), ")")
  })
}

# "PC1 (34.5% of variance)"
component_labels <- function(object) {
  shares <- variance_shares(object)
  paste0(colnames(object$scores), ifelse(
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
  type <- check_choice(type, c("barplot", "lines"), "type")
  npcs <- check_count(npcs, "npcs")
  if (npcs > length(x$values)) {
    stop_input("'npcs' must be at most ", length(x$values), ", the components ",
               "of the fit, not ", npcs)
  }
  shown <- seq_len(npcs)
  variances <- stats::setNames(x$values, colnames(x$scores))[shown]
  if (type == "barplot") {
    draw(graphics::barplot, list(
      height = variances, main = main, ylab = "Variances", las = 1,
      col = "#56B4E9", border = NA
    ), ...)
    abline(h = 0)
  } else {
    draw(graphics::plot, list(
      x = shown, y = variances, type = "b", pch = 19, xaxt = "n", las = 1,
      main = main, xlab = "", ylab = "Variances"
    ), ...)
    graphics::axis(1, at = shown, labels = names(variances))
  }
  invisible(variances)
}
