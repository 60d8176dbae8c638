#' Plots of kernel principal components
#'
#' The scores of two components with the groups in colour, and the variances.
#'
#' `plot()` draws the scores of the sample with the shares of variance on the
#' axes; one component is drawn against the index of the points. Of more than
#' 2,000 points an even share is drawn. Eight groups or fewer have colours of
#' the Okabe--Ito palette, more have a scale from dark to light in the order of
#' the levels (so a numeric variable may be a group).
#'
#' `screeplot()` draws the variances \eqn{\gamma_j/n}{gamma_j/n} of the leading
#' components, as for [stats::prcomp()].
#'
#' @param x A fit of [kme_pca()].
#' @param y Must be missing, or the `comps`.
#' @param comps Which components to draw: one or two whole numbers, also as the
#'   second argument; by default the first two, or the only one.
#' @param group `NULL`, or the group of each point: a factor or a vector.
#' @param ... Passed to [plot.default()] (bars: [barplot()]); `col`, `pch`,
#'   `cex`, `bg` and `lwd` are for the points.
#' @param npcs Number of components.
#' @param type `"barplot"` or `"lines"`.
#' @param main The title.
#' @return What was drawn, invisibly: a data frame with the scores of all
#'   points, named by component (`index` first for one component), and `group`
#'   where it is given; for `screeplot()` the named variances.
#' @family operators
#' @examples
#' fit <- kme_pca(scale(iris[, 1:4]), ncomp = 3)
#' plot(fit, group = iris$Species)
#' plot(fit, c(1, 3), group = iris$Petal.Width)
#' screeplot(fit)
#' @export
plot.kme_pca <- function(x, y, comps = c(1, 2), group = NULL, ...) {
  p <- ncol(x$scores)
  comps <- if (!missing(y)) {
    y
  } else if (missing(comps)) {
    seq_len(min(2L, p))
  } else {
    comps
  }
  comps <- check_comps(comps, p)
  group <- check_group(group, x$n)
  labels <- component_labels(x)[comps]
  found <- data.frame(x$scores[, comps, drop = FALSE], row.names = NULL)
  if (length(comps) == 1L) {
    found <- cbind(index = seq_len(x$n), found)
    labels <- c("index", labels)
  }
  draw_groups(as.matrix(found), group, list(
    xlab = labels[1L], ylab = labels[2L], main = pca_heading(x)
  ), list(...), lines_at = if (length(comps) == 2L) c(0, 0) else c(NA, 0))
  found$group <- group
  invisible(found)
}

pca_heading <- function(object) {
  switch(object$covariance, kme = "Kernel PCA", skmse = "Kernel PCA (S-COSE)",
         fkmse = "Kernel PCA (F-COSE)")
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
  variances <- stats::setNames(x$values, colnames(x$scores))[shown] / x$n
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
