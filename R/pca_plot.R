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
#' @param ... Passed to [plot.default()] (bars: [barplot()]).
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
  xy <- as.matrix(found)
  colours <- level_colours(group)
  draw(graphics::plot, list(
    x = xy, type = "n", las = 1, xlab = labels[1L], ylab = labels[2L],
    main = pca_heading(x)
  ), ...)
  abline(h = 0, v = if (length(comps) == 2L) 0, lty = 3, col = "grey60")
  draw_points(xy, if (is.null(group)) group_colours[1L] else
    colours[as.integer(group)])
  if (!is.null(group)) {
    level_legend(group, colours, xy)
    found$group <- group
  }
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

# The group of each of n points as a factor, or NULL.
check_group <- function(group, n) {
  if (is.null(group)) {
    return(NULL)
  }
  if (!is.atomic(group) || length(group) != n || anyNA(group)) {
    stop_input(
      "'group' must have one value for each of the ", n, " points, none ",
      "missing, not ", describe(group)
    )
  }
  droplevels(as.factor(group))
}

okabe_ito <- c("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7",
               "#56B4E9", "#F0E442", "#000000")

level_colours <- function(group) {
  count <- nlevels(group)
  if (count <= length(okabe_ito)) {
    okabe_ito[seq_len(count)]
  } else {
    hcl.colors(count, "viridis")
  }
}

# In the corner where the fewest points are; of many levels a few.
level_legend <- function(group, colours, xy) {
  unit <- apply(xy, 2, \(u) (u - min(u)) / max(diff(range(u)), 1e-300))
  corners <- list(topright = c(1, 1), topleft = c(0, 1),
                  bottomright = c(1, 0), bottomleft = c(0, 0))
  crowd <- vapply(corners, \(corner) {
    sum(abs(unit[, 1L] - corner[1L]) < 0.3 & abs(unit[, 2L] - corner[2L]) < 0.3)
  }, numeric(1))
  count <- nlevels(group)
  shown <- if (count <= length(okabe_ito)) {
    seq_len(count)
  } else {
    unique(round(seq(1, count, length.out = 5L)))
  }
  legend(names(which.min(crowd)), levels(group)[shown], pch = 21,
         pt.bg = colours[shown], col = "white", bg = "white",
         box.col = "grey60", inset = 0.02, cex = 0.9)
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
