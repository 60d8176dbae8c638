# Kernels between distributions: functions of the inner products of their
# embeddings. A level is list(type, and what its kernel needs: bandwidth and
# rule; degree, offset).

level_types <- c("linear", "cosine", "rbf", "laplace", "poly")

level_title <- c(
  linear = "<mu, nu>", cosine = "<mu, nu>/(|mu| |nu|)",
  rbf = "exp(-|mu - nu|^2/(2 s^2))", laplace = "exp(-|mu - nu|/s)",
  poly = "(<mu, nu> + c)^p"
)

# NULL stands for what was not given: arguments of another type say that
# something else was meant.
check_level <- function(level2, bandwidth2 = NULL, degree = NULL,
                        offset = NULL) {
  type <- check_choice(level2, level_types, "level2")
  given <- list(bandwidth2 = bandwidth2, degree = degree, offset = offset)
  takes <- switch(type, rbf = , laplace = "bandwidth2",
                  poly = c("degree", "offset"))
  wrong <- setdiff(names(Filter(Negate(is.null), given)), takes)
  if (length(wrong)) {
    stop_input("'", wrong[1L], "' must not be given for level2 = \"", type,
               "\"; it is for ", if (wrong[1L] == "bandwidth2") {
                 "\"rbf\" and \"laplace\""
               } else {
                 "\"poly\""
               })
  }
  level <- list(type = type)
  if ("bandwidth2" %in% takes) {
    level$bandwidth <- check_bandwidth2(bandwidth2)
  } else if ("degree" %in% takes) {
    level$degree <- if (is.null(degree)) 2L else check_count(degree, "degree")
    level$offset <- if (is.null(offset)) 1 else check_number(offset, "offset")
  }
  level
}

check_bandwidth2 <- function(bandwidth2) {
  if (is.null(bandwidth2) || identical(bandwidth2, "median")) {
    return("median")
  }
  if (!is.numeric(bandwidth2) || length(bandwidth2) != 1L) {
    stop_input("'bandwidth2' must be \"median\" or one positive number, not ",
               describe(bandwidth2))
  }
  check_bandwidth(bandwidth2, "bandwidth2")
}

# With its bandwidth as a number: the median distance of the bags.
fit_level <- function(level, inner) {
  if (!identical(level$bandwidth, "median")) {
    return(level)
  }
  own <- diag(inner)
  apart <- level_distances(inner, own, own)
  apart <- apart[upper.tri(apart)]
  s2 <- if (length(apart)) stats::median(apart) else 0
  level$rule <- "median distance of the bags"
  if (s2 == 0) {
    positive <- apart[apart > 0]
    s2 <- if (length(positive)) min(positive) else 1
    level$rule <- if (length(positive)) {
      "smallest positive distance of the bags"
    } else {
      "all bags are equal"
    }
    if (length(positive)) {
      warn_kernmean("the median distance of the bags is 0 (many are equal); ",
                    "'bandwidth2' is the smallest positive one, ",
                    format_number(sqrt(s2)))
    }
  }
  level$bandwidth <- sqrt(s2)
  level
}

# |mu_a - nu_b|^2 from inner products and squared norms.
level_distances <- function(inner, left, right) {
  sums <- outer(left, right, `+`)
  apart <- check_result(sums - 2 * inner, "a distance of two bags", "the bags")
  # Below this a squared distance is rounding.
  apart[apart < 1e-14 * sums] <- 0
  apart
}

# The kernel of a level.
level_values <- function(level, inner, left, right) {
  values <- switch(level$type,
    linear = inner,
    cosine = level_cosine(inner, left, right),
    rbf = exp(level_distances(inner, left, right) / (-2 * level$bandwidth^2)),
    laplace = exp(-sqrt(level_distances(inner, left, right)) / level$bandwidth),
    poly = (inner + level$offset)^level$degree
  )
  check_result(values, "the kernel of two bags", "the bags")
}

# An embedding of 0 has no direction: its cosine is 0 with all.
level_cosine <- function(inner, left, right) {
  inverse <- \(norm2) ifelse(norm2 > 0, 1 / sqrt(pmax(norm2, 0)), 0)
  pmax(pmin(inner * outer(inverse(left), inverse(right)), 1), -1)
}

# The kernel of embeddings with themselves.
level_diagonal <- function(level, norm2) {
  switch(level$type, linear = norm2, cosine = as.numeric(norm2 > 0),
         poly = (norm2 + level$offset)^level$degree,
         rep(1, length(norm2)))
}

describe_level <- function(level) {
  paste0(
    "level 2: ", level_title[[level$type]],
    if (!is.null(level$bandwidth)) paste0(
      "; s = ", format_number(level$bandwidth),
      if (!is.null(level$rule)) paste0(" (", level$rule, ")")
    ),
    if (!is.null(level$degree)) paste0(
      "; c = ", format_number(level$offset), ", p = ", level$degree
    )
  )
}

# --- What a gram of bags holds -----------------------------------------------
