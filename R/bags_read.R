# Reading bags: samples of which each is one observation. What a door takes
# becomes list(x: the points of all, bag after bag; sizes: how many each has,
# named; ordered: did the bags come in this order?; column: the name of the
# column that told them apart, if one did).

# `x`: a plain list of bags, or points of all bags with `id`, the bag of each.
read_bags <- function(x, id = NULL) {
  if (missing(x) || is.null(x)) {
    stop_input("'bags' must be given: a list of samples, or points with 'id'")
  }
  if (is_plain_list(x)) {
    if (!is.null(id)) {
      stop_input("'id' must not be given when 'bags' is a list of bags")
    }
    return(bind_bags(x))
  }
  if (is.null(id)) {
    stop_input("'bags' must be a list of samples, or come with 'id', the bag ",
               "of each row, not ", describe(x), " alone")
  }
  column <- id_column(id, x)
  if (!is.null(column)) {
    id <- x[, column, drop = TRUE]
    x <- x[, setdiff(colnames(x), column), drop = FALSE]
  }
  x <- check_data(x, "bags")
  bag <- check_id(id, nrow(x))
  c(sort_bags(x, bag), list(ordered = comes_sorted(id, bag), column = column))
}

# The column of a data frame or matrix that `id` names, or NULL.
id_column <- function(id, x) {
  if (!is.character(id) || length(id) != 1L || is_plain_list(x)) {
    return(NULL)
  }
  if (!id %in% colnames(x)) {
    # The name of the bag of a single row.
    if (NROW(x) == 1L) return(NULL)
    stop_input("'id' must be the bag of each row or the name of a column, not ",
               describe(id), ", which is none")
  }
  id
}

# Points of bags as they are listed, whose columns are those of the first, or of
# `like`.
bind_bags <- function(bags, like = NULL, name = "bags") {
  if (!length(bags)) {
    stop_input("'", name, "' must hold at least one bag, not none")
  }
  labels <- vapply(seq_along(bags),
                   \(i) element_label(names(bags), i, name), "")
  first <- if (is.null(like)) check_data(bags[[1L]], labels[1L]) else like
  points <- Map(\(bag, label) {
    if (NROW(bag) == 0L) {
      stop_input("'", label, "' must have at least one point; a bag without ",
                 "any has no kernel mean")
    }
    if (ncol(first) == 1L && NCOL(bag) == 1L) {
      return(unname(check_data(bag, label)))
    }
    check_same_columns(bag, first, label, is.null(like))
  }, unname(bags), labels)
  x <- bind_rows(points)
  dimnames(x) <- if (!is.null(colnames(first))) list(NULL, colnames(first))
  list(x = x, sizes = stats::setNames(vapply(points, nrow, 1L),
                                      bag_names(names(bags), length(bags))),
       ordered = TRUE)
}

check_same_columns <- function(bag, first, label, own) {
  given <- colnames(bag)
  wanted <- colnames(first)
  of <- if (own) "of the first bag" else "of the fit"
  # Columns are matched by their names, none may be left over.
  extra <- if (!is.null(wanted)) setdiff(given, wanted)
  if (own && length(extra)) {
    stop_input("'", label, "' must have the columns ", of, ", ",
               shorten(wanted), ", and no others, not ", shorten(given))
  }
  if (!is.null(given) && !is.null(wanted)) {
    missing <- setdiff(wanted, given)
    if (length(missing)) {
      stop_input("'", label, "' must have the columns ", of, "; missing: ",
                 paste0("'", missing, "'", collapse = ", "))
    }
    bag <- bag[, wanted, drop = FALSE]
  }
  bag <- check_data(bag, label)
  if (ncol(bag) != ncol(first)) {
    stop_input("'", label, "' must have the ", count_of(ncol(first), "column"),
               " ", of, ", not ", ncol(bag))
  }
  bag
}

# Names for bags: those that have none are called by their number.
bag_names <- function(names, count) {
  numbers <- as.character(seq_len(count))
  if (is.null(names)) {
    return(numbers)
  }
  names <- ifelse(is.na(names) | !nzchar(names), numbers, names)
  twice <- names[duplicated(names)]
  if (length(twice)) {
    stop_input("the names of bags must differ; two are named '", twice[1L], "'")
  }
  names
}

# A factor of the bag of each row: levels in their order, other values as they
# come first. New bags need not be of all levels.
check_id <- function(id, n, new = FALSE) {
  if (!is.atomic(id) || is.null(id) || length(id) != n) {
    stop_input("'id' must name the bag of each of the ", n, " rows, ",
               "not be ", describe(id),
               if (is.factor(id)) paste(" of length", length(id)))
  }
  # A factor may have NA among its levels.
  absent <- sum(is.na(if (is.factor(id)) as.character(id) else id))
  if (absent) {
    stop_input("'id' must have no missing values, not ", absent, " NA")
  }
  if (is.double(id) && anyDuplicated(id) == 0L && n > 1L &&
        any(id != round(id))) {
    stop_input("'id' must name bags, not be ", n, " numbers that all differ")
  }
  if (!is.factor(id)) {
    names <- as.character(id)
    return(factor(names, unique(names)))
  }
  empty <- setdiff(levels(id), as.character(id))
  if (length(empty) && !new) {
    warn_kernmean("'id' has levels without points, which are left ",
                  "out: ", shorten(paste0("'", empty, "'")))
  }
  droplevels(id)
}

# Do the rows name the bags first in the order of the levels, and is that the
# order of the names? Else what has no names is not known to go with the bags.
comes_sorted <- function(id, bag) {
  !is.unsorted(unique(as.integer(bag))) &&
    (is.factor(id) || !is.unsorted(unique(id)))
}

sort_bags <- function(x, bag) {
  order <- order(as.integer(bag))
  if (is.unsorted(order)) x <- x[order, , drop = FALSE]
  rownames(x) <- NULL
  list(x = x, sizes = bag_sizes(bag))
}

bag_sizes <- function(id) {
  stats::setNames(tabulate(id, nlevels(id)), levels(id))
}

# "20 bags of 5 points", "92 bags of 2 to 40 points"
describe_bags <- function(sizes) {
  ends <- range(sizes)
  paste0(
    count_of(length(sizes), "bag"), " of ",
    if (ends[1L] == ends[2L]) count_of(ends[1L], "point") else
      paste(ends[1L], "to", ends[2L], "points")
  )
}
