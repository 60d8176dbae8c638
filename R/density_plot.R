fit_picture.kme_density <- function(object, type = NULL, columns = NULL,
                                    n = 200, breaks = NULL) {
  if (check_type(type, c("density", "path")) == "path") {
    return(picture_path(object))
  }
  n <- check_count(n, "n", 2L)
  x <- known_rows(object$sample)
  columns <- if (is.null(columns)) {
    seq_len(min(2L, ncol(x)))
  } else {
    labels <- if (is.null(colnames(x))) seq_len(ncol(x)) else colnames(x)
    check_pick(columns, labels, "columns", 1:2)
  }
  marginal <- c(list(x = x[, columns, drop = FALSE]),
                marginal_mixture(object, columns))
  title <- paste("Density matched to the", object$estimator$label)
  if (length(columns) == 1L) {
    picture_density_curve(marginal, n, title, breaks)
  } else {
    picture_density_contours(marginal, n, title)
  }
}

# The components (times their weights) at points of one or two columns, points x
# m.
component_values <- function(q, z) {
  values <- vapply(seq_along(q$weights), \(j) {
    root <- chol(as.matrix(q$covariances[, , j]))
    apart <- forwardsolve(t(root), t(z) - q$means[j, ])
    q$weights[j] * exp(-colSums(apart^2) / 2) /
      (prod(diag(root)) * (2 * pi)^(ncol(z) / 2))
  }, numeric(nrow(z)))
  matrix(values, nrow(z))
}

component_sd <- function(q, column) sqrt(q$covariances[column, column, ])

picture_density_curve <- function(q, n, title, breaks) {
  x <- drop(q$x)
  rows <- length(x) > 0L
  sd <- component_sd(q, 1L)
  ends <- range(if (rows) padded_range(x), q$means - 2 * sd, q$means + 2 * sd)
  z <- seq(ends[1L], ends[2L], length.out = n)
  each <- component_values(q, matrix(z))
  value <- rowSums(each)
  bars <- if (rows) {
    if (is.null(breaks)) breaks <- min(grDevices::nclass.FD(x), n)
    graphics::hist(x, breaks, plot = FALSE)
  }
  several <- ncol(each) > 1L
  labels <- c("density", if (several) "components")
  colors <- c("#0072B2", "#56B4E9")[seq_along(labels)]
  new_picture(
    title, axis_names(q$x), "Density",
    list(
      if (rows) histogram_layer(bars, FALSE, "grey80", "white"),
      if (several) new_layer("line", x = rep(c(z, NA), ncol(each)),
                             y = as.vector(rbind(each, NA)),
                             col = colors[2L],
                             level = labels[2L]),
      new_layer("line", x = z, y = value, level = labels[1L],
                lwd = 2, col = colors[1L]),
      if (rows) new_layer("rug", x = x)
    ),
    data.frame(z = z, density = value), xlim = ends,
    ylim = c(0, max(bars$density, value)),
    key = key_entries(labels, colors, "line", lwd = 2:1)[seq_along(labels), ]
  )
}

picture_density_contours <- function(q, n, title) {
  # surface_of() pads the range that it is given.
  frame <- vapply(1:2, \(j) {
    sd <- component_sd(q, j)
    range(q$x[, j], q$means[, j] - sd, q$means[, j] + sd)
  }, numeric(2))
  surface <- surface_of(\(z) rowSums(component_values(q, z)), frame, n)
  angle <- seq(0, 2 * pi, length.out = 100)
  circle <- rbind(cos(angle), sin(angle))
  ellipses <- lapply(seq_along(q$weights), \(j) {
    line <- t(chol(q$covariances[, , j])) %*% circle + q$means[j, ]
    new_layer("line", x = line[1L, ], y = line[2L, ],
              lwd = 0.5 + 3 * q$weights[j] / max(q$weights))
  })
  points <- if (nrow(q$x)) points_layer(q$x, color = accent)
  centers <- new_layer("points", x = q$means[, 1L], y = q$means[, 2L],
                       pch = 3, col = "black", bg = "black")
  picture_surface(title, q$x, surface, "density",
                  c(if (!is.null(points)) list(points), ellipses,
                    list(centers)))
}

picture_path <- function(object) {
  path <- object$path
  if (is.null(path)) {
    stop_input("'type' must not be \"path\" unless the fit has optimize = ",
               "\"all\"")
  }
  heldout <- !is.null(path$heldout)
  value <- if (heldout) -path$heldout else path$objective
  step <- suppressWarnings(as.numeric(path$step))
  step[is.na(step)] <- 0
  at <- stop_row(object)
  # The best weights take no step.
  line <- path$step != "start" | !"weights" %in% path$step
  labels <- c("start", "returned")
  new_picture(
    "Where the fit stopped", "steps",
    if (heldout) "held-out log density" else "J",
    list(
      across_layer(h = value[1L], level = labels[1L]),
      new_layer("line", x = step[line], y = value[line], lwd = 2,
                main = TRUE),
      mark_layer(step[at], value[at], labels[2L])
    ),
    path, ylim = range(value), whole = "x",
    key = rbind(key_entries(labels[1L], "grey40", "line", lty = 2L),
                key_entries(labels[2L], accent))
  )
}
