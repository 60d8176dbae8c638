# What a fit of kme_cov() can do: new values, update, print, summary, plot.

# --- New values ------------------------------------------------------------

#' @rdname kme_cov
#' @param object,newdata A fit; new values, see Methods.
#' @param type `"scores"` or `"value"`, see Methods.
#' @param side For two variables: scores on the singular functions of the first
#'   (`"left"`) or of the second (`"right"`).
#' @export
predict.kme_cov <- function(object, newdata, type = c("scores", "value"),
                            ncomp = NULL, ..., side = c("left", "right")) {
  check_dots(...)
  type <- check_choice(type, c("scores", "value"), "type")
  d <- length(object$variables)
  if (type == "value" || d == 1L) {
    if (!missing(side)) {
      stop_input("'side' must not be given but for scores of two variables")
    }
  } else {
    side <- check_choice(side, c("left", "right"), "side")
  }
  if (type == "value") {
    if (!is.null(ncomp)) {
      stop_input("'ncomp' must be NULL for type = \"value\"")
    }
    return(operator_value(object, if (!missing(newdata)) list(newdata)))
  }
  if (d > 2L) {
    stop_input("'type' must be \"value\" for more than two variables, whose ",
               "tensor has no spectrum")
  }
  which <- if (d == 2L && side == "right") 2L else 1L
  v <- if (d == 1L) object$vectors else object[[side]]
  if (!is.null(ncomp)) {
    ncomp <- check_count(ncomp, "ncomp")
    if (ncomp > ncol(v)) {
      stop_input("'ncomp' must be at most ", ncol(v), ", the components that ",
                 "were kept, not ", ncomp)
    }
    v <- v[, seq_len(ncomp), drop = FALSE]
  }
  variable <- object$variables[[which]]
  if (missing(newdata)) {
    scores <- own_operator_scores(variable$sample, variable, v)
    names <- sample_names(variable$sample)
  } else {
    new <- read_values(object, newdata, which)[[1L]]
    scores <- if (ncol(v) == 0L) {
      matrix(0, new$m, 0L)
    } else {
      centered_apply(variable, new, v)$value
    }
    names <- new$names
  }
  dimnames(scores) <- list(names, colnames(v))
  scores
}

# L^c V at the points of the sample.
own_operator_scores <- function(sample, variable, v) {
  UseMethod("own_operator_scores")
}
own_operator_scores.kernmean_sample <- function(sample, variable, v) {
  product(centered_matrix(variable), v)
}

# sum_i beta_i prod_l k^c_l(z_l, x_il) at the rows of list(newdata), or at the
# sample for NULL.
operator_value <- function(object, newdata) {
  samples <- object$variables
  if (is.null(newdata)) {
    return(own_operator_value(samples[[1L]]$sample, object))
  }
  newdata <- newdata[[1L]]
  if (length(samples) == 1L) {
    if (is_several(newdata) && length(newdata) == 2L) {
      new <- lapply(unname(newdata), \(z) read_values(object, z, 1L)[[1L]])
    } else {
      new <- rep(read_values(object, newdata, 1L), 2L)
    }
    samples <- rep(samples, 2L)
  } else {
    new <- read_values(object, newdata, seq_along(samples))
  }
  rows <- vapply(new, \(z) z$m, 1L)
  if (any(rows != rows[1L])) {
    stop_input("'newdata' must have as many rows for each variable, not ",
               paste(rows, collapse = " and "))
  }
  value <- operator_at(samples[[1L]]$sample, object, samples, new)
  stats::setNames(value, new[[1L]]$names)
}

own_operator_value <- function(sample, object) UseMethod("own_operator_value")
own_operator_value.kernmean_sample <- function(sample, object) {
  value <- drop(centered_product(object$variables) %*% object$weights)
  stats::setNames(value, sample_names(sample))
}

# At rows of new points of the variables, as many of each.
operator_at <- function(sample, object, variables, new) {
  UseMethod("operator_at")
}
operator_at.kernmean_sample <- function(sample, object, variables, new) {
  at <- Map(centered_mean_at, variables, new)
  size <- max(1, 2^22 %/% object$n)
  unlist(lapply(row_panels(seq_len(new[[1L]]$m), size), \(kept) {
    values <- Map(\(variable, z, at) centered_cross(variable, z, at, kept),
                  variables, new, at)
    drop(Reduce(`*`, values) %*% object$weights)
  }))
}

# New points of the variables `which`.
read_values <- function(object, newdata, which) {
  values_of(object$variables[[1L]]$sample, object, newdata, which)
}

values_of <- function(sample, object, newdata, which) UseMethod("values_of")
values_of.kernmean_sample <- function(sample, object, newdata, which) {
  labels <- names(object$variables)
  if (!is.null(object$terms) && is.data.frame(newdata)) {
    newdata <- lapply(which, \(l) read_term(object$terms, newdata, l))
  } else {
    newdata <- pick_values(object, newdata, which)
  }
  Map(\(z, l) variable_newdata(object$variables[[l]], z, labels[l]), newdata,
      which, USE.NAMES = FALSE)
}

# The values of the variables `which` as a list.
pick_values <- function(object, newdata, which) {
  labels <- names(object$variables)
  d <- length(labels)
  if (is_several(newdata)) {
    if (length(newdata) != d && d == 1L) {
      stop_input("'newdata' must hold values of one variable, not a list of ",
                 length(newdata), "; pairs are for type = \"value\"")
    }
    if (length(newdata) != d) {
      stop_input("'newdata' must be a list of ", d, " variables, not of ",
                 length(newdata))
    }
    if (all(labels %in% names(newdata))) newdata <- newdata[labels]
    newdata <- unname(newdata)[which]
  } else {
    if (length(which) > 1L) {
      stop_input("'newdata' must be a list of ", d, " variables, not ",
                 describe(newdata))
    }
    newdata <- list(newdata)
  }
  newdata
}

# --- Methods ---------------------------------------------------------------

#' @export
coef.kme_cov <- function(object, ...) {
  check_dots(...)
  if (is.null(object$weights)) {
    stop_input("'object' must be a fit to points, not to a sketch, which has ",
               "no rows to be weighed; its field 'operator' holds a matrix")
  }
  object$weights
}

fit_request.kme_cov <- function(x, changes) {
  operator_request(x$variables[[1L]]$sample, x, changes)
}

operator_request <- function(sample, object, changes) {
  UseMethod("operator_request")
}
operator_request.kernmean_sample <- function(sample, object, changes) {
  arguments <- object$arguments
  variables <- object$variables
  same_data <- !any(c("x", "y") %in% names(changes))
  moved <- !same_data || "data" %in% names(changes)
  if ("data" %in% names(changes) && !is.null(object$terms)) {
    data <- lapply(seq_along(variables), \(l) {
      read_term(object$terms, changes$data, l, "data")
    })
    names(data) <- names(variables)
    changes$x <- if (length(data) == 1L) data[[1L]] else data
    changes$data <- NULL
  }
  sides <- if (!object$several) c("x", "y")[seq_along(variables)]
  # A formula has sides, a list has none.
  if (object$several && !is.null(object$terms)) {
    changes <- side_kernels(changes, variables)
  }
  changes <- change_kernels(changes, variables, object$several)
  # In other units bandwidths are others.
  rescale <- "scale" %in% names(changes)
  for (l in seq_along(sides)) {
    name <- paste0("kernel_", sides[l])
    given <- changes[[sides[l]]]
    if (!sides[l] %in% names(changes)) {
      if (!rescale) arguments[name] <- list(variable_kernel(variables[[l]]))
    } else {
      arguments[name] <- list(if (!has_own_kernel(given)) {
        kernel_for(given, arguments[[name]], variables[[l]]$sample)
      })
    }
    arguments[sides[l]] <- list(
      variable_input(variables[[l]], rescale || name %in% names(changes))
    )
  }
  if (is.null(sides) && !"x" %in% names(changes)) {
    rekernel <- rescale || "kernel_x" %in% names(changes)
    arguments$x <- lapply(variables, variable_input, rekernel)
    if (!rescale) arguments$kernel_x <- lapply(variables, variable_kernel)
  }
  kept <- setdiff(c("kernel_x", "kernel_y", "scale"), names(changes))
  structure(change_request(arguments, changes),
            kept = if (!moved) c(kept, character()))
}

cov_title <- function(object) {
  d <- length(object$variables)
  paste0(
    if (d > 2L) paste("Tensor of order", d) else
      c("Covariance operator", "Cross-covariance operator")[d],
    ", ", operator_words(object$estimator)
  )
}

# "150 points; x: 2 columns, y: factor of 3 levels"
describe_variables <- function(object) {
  what <- vapply(object$variables, describe_variable, "")
  strwrap(paste0(describe_rows(object$variables[[1L]]$sample), "; ",
                 paste0(names(what), ": ", what, collapse = ", ")),
          exdent = 2L)
}

# "150 points"
describe_rows <- function(sample) UseMethod("describe_rows")
describe_rows.kernmean_sample <- \(sample) count_of(sample$n, "point")

# What else there is to say of the samples.
describe_notes <- function(object) {
  notes <- lapply(object$variables, \(variable) sample_note(variable$sample))
  if (length(notes) == 1L) {
    return(notes[[1L]])
  }
  unlist(Map(\(label, note) if (!is.null(note)) paste0(label, ": ", note),
             names(notes), notes), use.names = FALSE)
}

# What features are centered by: NULL for their averages.
describe_centers <- function(object, digits) {
  means <- lapply(object$variables, \(variable) variable$mean)
  plain <- vapply(means, \(mean) {
    is_average(mean$estimator) && is.null(mean$sample$weights)
  }, NA)
  if (all(plain)) {
    return(NULL)
  }
  words <- unique(vapply(means, describe_mean, "", digits))
  if (length(words) > 1L) {
    words <- unique(sub(", lambda = .*", "", words))
  }
  strwrap(paste("center:", paste(words, collapse = "; ")), 81L, exdent = 2L)
}

# The kernels of the variables, as many lines as there is room for.
describe_kernels <- function(object, room) {
  each <- Map(variable_lines, object$variables, names(object$variables))
  each <- each[lengths(each) > 0L]
  # Whole ones, of which the last line may say how many there are besides.
  lines <- cumsum(lengths(each))
  shown <- if (length(each) && lines[length(each)] <= room) length(each) else
    sum(lines < room)
  more <- length(each) - shown
  c(unlist(utils::head(each, shown), use.names = FALSE),
    if (more) paste0(if (shown) "and ", more, if (shown) " more",
                     if (more == 1L) " kernel" else " kernels",
                     ", in the field 'variables'"))
}

fit_lines.kme_cov <- function(x, digits) {
  centers <- describe_centers(x, digits)
  number <- \(value) format(value, digits = digits)
  leading <- utils::head(x$values, 5L)
  c(
    cov_title(x), describe_variables(x),
    describe_kernels(x, if (is.null(centers)) 3L else 2L), describe_notes(x),
    centers,
    est_lines(x$estimator, x, digits, "the empirical operator", "0"),
    paste("Hilbert-Schmidt norm", number(sqrt(max(0, x$norm2)))),
    if (!is.null(x$values)) paste0(
      if (length(x$variables) == 1L) "eigenvalues" else "singular values",
      if (length(leading)) paste0(": ", paste(number(leading),
                                              collapse = " ")),
      " (rank ", x$rank, ")"
    )
  )
}

# The spectrum with its shares, of the trace or of the squared norm.
covariance_shares <- function(x) {
  one <- length(x$variables) == 1L
  share <- if (one) x$values / x$trace else x$values^2 / x$norm2
  structure(
    data.frame(value = x$values, share = share, cumulative = cumsum(share),
               row.names = colnames(if (one) x$vectors else x$left)),
    title = paste(if (one) "Eigenvalues and their share of the trace," else
      "Singular values and their squares' share of the squared norm,",
      format_number(if (one) x$trace else x$norm2))
  )
}

fit_summary.kme_cov <- function(x) {
  c(list(norm = sqrt(max(0, x$norm2))),
    if (!is.null(x$values)) list(values = covariance_shares(x)),
    if (!is_average(x$estimator) && !is.null(x$weights)) weights_summary(x))
}

fit_rows.kme_cov <- function(x, ...) {
  check_dots(...)
  table <- if (!is.null(x$values)) covariance_shares(x)
  share_frame(c("component", "value"), as.double(table$value),
              as.double(table$share))
}

fit_facts.kme_cov <- function(x) {
  list(nobs = x$n, variables = length(x$variables),
       estimator = x$estimator$name, select = one_word(x$select),
       lambda = x$lambda, alpha = x$alpha, rank = x$rank, trace = x$trace,
       norm2 = x$norm2)
}

fit_values.kme_cov <- function(x, newdata = NULL) {
  if (!is.null(newdata)) {
    stop_input("'newdata' must be NULL for an operator; predict() has its ",
               "scores and values at new points")
  }
  if (!is.null(x$weights)) data.frame(.weight = x$weights)
}

# Points of several variables and codes of factors are no data to be shown.
fit_sample_of.kme_cov <- function(x) {
  sample <- x$variables[[1L]]$sample
  sample["x"] <- list(NULL)
  sample
}


#' @rdname kme_cov
#' @param type For `predict()` `"scores"` or `"value"`.
#' @name kme_cov
NULL

fit_picture.kme_cov <- function(object, type = NULL, groups = NULL,
                                name = NULL) {
  type <- check_type(
    type, c("spectrum", "selection", "scores", "weights"),
    if (length(object$values)) {
      "spectrum"
    } else if (!is.null(object$score)) {
      "selection"
    } else {
      "weights"
    }
  )
  groups <- check_groups(groups, object$n)
  if (!is.null(groups) && type != "scores") {
    stop_input("'groups' must not be given but for type \"scores\"")
  }
  if (type == "weights") coef(object)
  if (type %in% c("spectrum", "scores") && !length(object$values)) {
    stop_input("'type' must not be \"", type, "\" for an operator without a ",
               "spectrum")
  }
  switch(type,
    spectrum = picture_values(object),
    selection = picture_selection(object),
    scores = picture_operator(object, groups, name),
    weights = picture_weights(object, cov_title(object))
  )
}

picture_values <- function(object) {
  one <- length(object$variables) == 1L
  picture <- picture_sequence(
    cov_title(object), object$values,
    if (one) "eigenvalue" else "singular value"
  )
  picture$layers <- c(list(across_layer(h = 0)), picture$layers)
  picture$ylim <- range(0, object$values)
  picture
}

picture_operator <- function(object, groups, name) {
  lines_at <- c(0, 0)
  if (length(object$variables) == 1L) {
    shown <- predict(object, ncomp = min(2L, length(object$values)))
    if (ncol(shown) == 1L) {
      shown <- cbind(index = seq_len(object$n), shown)
      lines_at[1L] <- NA
    }
    labels <- colnames(shown)
  } else {
    shown <- cbind(left = predict(object, ncomp = 1L, side = "left")[, 1L],
                   right = predict(object, ncomp = 1L, side = "right")[, 1L])
    labels <- paste0(names(object$variables), ", first singular function")
  }
  groups_picture(
    paste("Scores:", tolower(sub(",.*", "", cov_title(object)))), shown, groups,
    labels, shown, lines_at, name, whole = if (is.na(lines_at[1L])) "x"
  )
}
