# Methods of weights that match embeddings.

#' @rdname kme_weights
#' @importFrom stats weights
#' @export
weights.kme_weights <- function(object, ...) {
  check_dots(...)
  stats::naresid(object$na.action, same_version(object)$weights)
}

#' @rdname kme_weights
#' @export
predict.kme_weights <- function(object, newdata, ...) {
  check_dots(...)
  same_version(object)
  check_given(newdata)
  space <- object$space
  name <- object$names
  read <- !is.null(object$layout) && is.data.frame(newdata)
  treat <- NULL
  if (!is.null(object$treat)) {
    if (!read && !(is.data.frame(newdata) && name %in% names(newdata))) {
      stop_input("'newdata' must be a data frame with the treatment, '", name,
                 "'")
    }
    treat <- if (read) read_again(object$layout, newdata, "treat") else
      newdata[[name]]
    treat <- if (space$dose) check_outcome(treat, nrow(newdata), name) else
      seen_levels(treat, levels(object$treat), name)
    if (!read) newdata <- newdata[setdiff(names(newdata), name)]
  }
  x <- if (read) read_again(object$layout, newdata, "x") else newdata
  columns <- covariate_columns(x, space$like, "newdata")
  z <- scale_points(object$kernel, cbind(if (space$dose) treat, columns))
  w <- rep(1, nrow(z))
  for (name in names(object$fits)) {
    rows <- if (is.factor(treat)) which(treat == name) else seq_len(nrow(z))
    if (length(rows)) {
      w[rows] <- weight_values(object, name, take_rows(z, rows))
    }
  }
  stats::setNames(w, rownames(x))
}

weight_values <- function(object, name, z) {
  f <- object$fits[[name]]
  features <- cbind(free_columns(object$space, z),
                    point_features(f$map, f$support, list(z = z)))
  values <- drop(product(features, as.matrix(f$coefficients)))
  if (object$positive) pmax(values, 0) else values
}

# A data frame with a line for each group: its number of rows, its effective
# number of rows, and other facts of its fit.
group_table <- function(x) {
  each <- \(name) unlist(lapply(x$fits, `[[`, name))
  imbalance <- vapply(x$fits, `[[`, numeric(3), "imbalance")
  table <- list(rows = lengths(x$rows), effective = each("ess"),
                largest = each("largest"), lambda = each("lambda"),
                mu = each("mu"), before = imbalance["before", ],
                after = imbalance["after", ])
  as.data.frame(Filter(length, table), row.names = names(x$fits))
}

weights_title <- function(x) {
  kind <- x$estimand %||% if (x$space$dose) "independence" else "target"
  paste0("Weights that match embeddings (", kind, ")")
}

# The lines of print() for a table of groups; the dots are columns that come
# before the imbalance.
group_lines <- function(groups, ..., label = "") {
  # Effective rows are not shown for derivatives, whose weights have the mean 0.
  table <- data.frame(c(if (!anyNA(groups$effective)) list(
    "effective rows" = paste(round(groups$effective), "of", groups$rows)
  ), list(...)), check.names = FALSE)
  table[["imbalance (before)"]] <- paste0(
    format_number(groups$after, 3L), " (", format_number(groups$before, 3L), ")"
  )
  row.names(table) <- paste0(label, row.names(groups))
  utils::capture.output(print(table))
}

fit_lines.kme_weights <- function(x, digits) {
  groups <- group_table(x)
  ends <- \(of) format_number(round(max(abs(x$balance[[of]])), 8L), digits)
  c(
    weights_title(x),
    paste0(rows_of(x$n), if (!is.null(x$focal)) {
      paste0(", to look like '", x$focal, "'")
    }, "; ", count_of(ncol(x$covs), "covariate")),
    strwrap(describe_factors(frame_levels(x$covs)), 81L, exdent = 2L),
    kernel_lines(x$kernel), "",
    group_lines(groups, "largest share" =
                  paste0(format(100 * groups$largest, digits = 2L), "%"),
                lambda = format_number(groups$lambda, 3L),
                label = if (is.factor(x$treat)) {
                  paste(x$names, "= ")
                }), "",
    if (!anyNA(x$balance$before)) {
      paste0("largest ", if (x$space$dose) "correlation with the treatment" else
        "standardized difference of a mean", ": ", ends("after"), " (before ",
        ends("before"), ")")
    }
  )
}

fit_summary.kme_weights <- function(x) {
  list(groups = structure(group_table(x), title = "Groups"),
       balance = structure(x$balance, title = "Balance"))
}

fit_facts.kme_weights <- function(x) {
  groups <- group_table(x)
  c(list(nobs = x$n, estimand = one_word(x$estimand),
         effective = sum(groups$effective),
         largest = max(groups$largest), lambda = one_number(groups$lambda),
         imbalance = max(groups$after), difference = max(abs(x$balance$after))),
    kernel_columns(x$kernel))
}

fit_rows.kme_weights <- function(x, ...) {
  check_dots(...)
  x$balance
}

fit_values.kme_weights <- function(x, newdata = NULL) {
  w <- if (is.null(newdata)) x$weights else predict(x, newdata)
  data.frame(.weight = unname(w), row.names = names(w))
}

fit_columns.kme_weights <- function(x, newdata, added) {
  if (!is.null(newdata)) {
    return(named_frame(newdata))
  }
  treat <- x$treat
  if (is.null(treat)) x$covs else
    cbind(stats::setNames(data.frame(treat), x$names), x$covs)
}

fit_request.kme_weights <- function(x, changes) {
  structure(change_data(x, changes, list(
    x = x$space$like, treat = x$treat, weights = x$s.weights, target = x$target
  )), fields = "names")
}

# The stored request of a fit with its data, after the changes of update().
change_data <- function(x, changes, data) {
  if ("data" %in% names(changes)) {
    stop_input("'data' must not be given to update(), which has them; a fit ",
               "to other data takes a new call")
  }
  if (is.data.frame(changes$target) && !is.null(x$layout)) {
    changes$target <- read_again(x$layout, changes$target, "x", "target")
  }
  asked <- x$arguments
  data <- Filter(Negate(is.null), data)
  asked[names(data)] <- data
  change_request(asked, changes)
}

fit_picture.kme_weights <- function(object, type = NULL, breaks = "Sturges") {
  type <- check_type(type, c("balance", "weights"))
  if (type == "balance") {
    return(picture_balance(object))
  }
  weights <- lapply(object$fits, `[[`, "weights")
  if (is.factor(object$treat)) {
    names(weights) <- paste(object$names, "=", names(weights))
  }
  picture_weights_of(weights_title(object), weights, breaks)
}

# The picture of differences before and after weighting, a line for each
# covariate and group.
picture_balance <- function(x) {
  table <- x$balance
  if (all(is.na(table$before))) {
    stop_input("'type' must not be \"balance\" for a target without points")
  }
  several <- length(unique(table$group)) > 1L
  before <- abs(table$before)
  after <- abs(table$after)
  colors <- c("grey50", level_palette[1L])
  picture_lines(
    weights_title(x), if (x$space$dose) "|correlation with the treatment|" else
      "|difference of means| in standard deviations",
    paste0(table$column, if (several) paste0(" (", table$group, ")")),
    before, after, \(at) list(
      points_layer(cbind(before, at), color = colors[1L]),
      points_layer(cbind(after, at), color = colors[2L], main = TRUE)
    ), table, xlim = c(0, max(before, after, 0.1)),
    key = key_entries(c("before", "after"), colors)
  )
}

# The picture of a horizontal line for each label; `layers` returns the other
# layers for the heights of the lines.
picture_lines <- function(title, xlab, labels, from, to, layers, value, ...,
                          col = "grey80", lwd = 1) {
  at <- rev(seq_along(labels))
  new_picture(
    title, xlab, "",
    c(list(lying_layer(at, from, to, col = col, lwd = lwd)), layers(at)),
    value, ylim = c(0.5, length(at) + 0.5),
    ticks_y = list(at = at, labels = labels), ...
  )
}

# The picture with a histogram of weights for each group.
picture_weights_of <- function(title, weights, breaks) {
  panels <- Map(\(w, name) {
    bars <- graphics::hist(w, breaks = breaks, plot = FALSE)
    new_picture(
      if (length(weights) > 1L) name else title, "weight", "rows",
      list(histogram_layer(bars, TRUE, tint(level_palette[1L]), "white")),
      data.frame(weight = unname(w)), panel = name,
      ylim = c(0, max(bars$counts))
    )
  }, weights, names(weights))
  new_panels(unname(panels), title, "weight", "rows")
}
