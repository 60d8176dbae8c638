# name: that of measured groups.
fit_picture.kme_pca <- function(object, type = NULL, comps = NULL,
                                groups = NULL, newdata = NULL, npcs = NULL,
                                name = NULL) {
  rows <- !is.null(object$scores) || !is.null(newdata)
  type <- check_type(type, c("scores", "spectrum"),
                     if (rows) "scores" else "spectrum")
  if (type == "scores") {
    picture_scores(object, comps, groups, name, newdata)
  } else if (is.null(npcs)) {
    picture_scree(object)
  } else {
    picture_scree(object, npcs)
  }
}

picture_scores <- function(object, comps, groups, name, newdata) {
  known <- colnames(object$vectors)
  comps <- if (is.null(comps)) seq_len(min(2L, length(known))) else
    check_pick(comps, known, "comps", 1:2)
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

#' @rdname plot.kernmean_fit
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
                   pch = 19, bg = "black", main = TRUE)),
    variances, ylim = range(0, variances),
    ticks = list(at = shown, labels = names(variances), tick = TRUE)
  )
}
