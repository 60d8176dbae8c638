# What a call is about: how many points of what kind, and the code of points,
# kernels, estimators, variables and formulas that go with them.

draw_seed <- function() sample.int(99999L, 1L)
chance <- function(p) runif(1L) < p
any_of <- function(x) x[[sample.int(length(x), 1L)]]

# One of several pieces of code; .(x) in it is filled in.
one <- function(...) {
  code <- any_of(eval(substitute(alist(...))))
  if (!is.call(code)) return(code)
  eval(call("bquote", code), parent.frame())
}

# Code that has to be in the call itself, as names of columns.
as_it_is <- function(code) structure(list(code = code), class = "as_it_is")

styles <- c("tiny", "small", "large", "huge", "denormal", "largest", "constant",
            "zero", "duplicates", "ties", "outlier", "far", "offset", "units",
            "spread", "flat", "collinear", "shifted")

# Data of R: code, with what its columns are found out when it is used.
real_points <- alist(
  iris[seq(1, 150, 6), 1:4], women, faithful[1:30, ], mtcars[, c(1, 3, 4)],
  airquality[1:30, 1:4], swiss[1:30, ], as.matrix(attitude), cars, trees, rock,
  longley[, 1:5], precip[1:30], USArrests, as.matrix(volcano[1:20, 1:3]),
  LakeHuron
)
real_frames <- alist(
  iris[seq(1, 150, 5), ], women, faithful[1:40, ], mtcars, airquality[1:40, ],
  ChickWeight[1:40, ], chickwts[seq(1, 71, 2), ], infert[seq(1, 248, 8), ],
  warpbreaks, sleep, CO2[1:40, ], esoph[1:40, ], npk, attenu[1:40, ],
  as.data.frame(Titanic)
)

# How many points of what kind; the sizes of all arguments follow from it.
new_scene <- function(entry, extreme) {
  n <- any_of(if (extreme) c(1, 1, 2, 2, 3, 3, 4, 5, 8, 12, 20, 30) else
    c(8, 12, 15, 20, 25, 30, 40))
  d <- any_of(if (extreme) c(1, 1, 2, 2, 3, n + 2) else c(1, 1, 2, 2, 3))
  m <- if (chance(0.5)) n else any_of(if (extreme) c(1, 2, 3, 9) else c(7, 12,
                                                                        20))
  style <- if (extreme && chance(0.7)) any_of(styles) else "normal"
  form <- any_of(c("matrix", "matrix", "frame", "named", "vector", "tibble",
                   if (extreme) "integer"))
  real <- if (extreme && chance(0.2)) any_of(real_points)
  list2env(list(entry = entry, n = n, m = m, d = d, style = style, form = form,
                real = real, extreme = extreme, columns = NULL),
                parent = emptyenv())
}

# Code of points ------------------------------------------------------------

pts <- function(s, n = s$n, d = s$d, style = s$style, form = s$form) {
  call <- call("points", n, d, draw_seed())
  if (style != "normal") call$style <- style
  if (form != "matrix") call$form <- form
  call
}

first <- function(s) if (is.null(s$real)) pts(s) else s$real

# The second sample has the columns of the first.
second <- function(s) {
  if (is.null(s$real)) pts(s, s$m) else call("rev", s$real)
}

grams <- function(s) {
  one(gram(.(pts(s))), gram(.(pts(s)), .(a_kernel(s))),
      as_gram(diag(.(s$n)) + 0.5),
      shrink_gram(gram(.(pts(s)))))
}

a_number <- function(s) one(1, 0.5, 2, 0.1, 10, 1e-3, 100)

a_kernel <- function(s) {
  if (s$extreme && chance(0.15)) {
    return(one(kernel_rbf(1e-300), kernel_rbf(1e300), kernel_laplace(1e-310),
               kernel_poly(50), kernel_poly(2, 1e300), kernel_matern(1 / 2,
                                                                     1e-200),
               kernel_matern(5 / 2, 1e200), kernel_rbf(1e-8),
               kernel_rbf(5e-324),
               kernel_poly(1e9, 0), kernel_poly(2147483648, 1)))
  }
  if (chance(0.1)) {
    return(one(kernel_function(own_kernel), kernel_function(own_error),
               kernel_rbf(own_width), kernel_laplace(own_error),
               kernel_function(own_warning), kernel_rbf(own_warning)))
  }
  one(kernel_rbf(), kernel_rbf(), kernel_rbf(1), kernel_rbf(1),
      kernel_laplace(),
      kernel_laplace(1, "L2"), kernel_matern(), kernel_matern(1 / 2),
      kernel_matern(5 / 2, 2), kernel_poly(), kernel_poly(3, 0),
      kernel_linear(),
      kernel_energy(), kernel_rbf(.(widths(s))))
}

widths <- function(s) as.call(c(quote(c), as.list(seq_len(s$d) / 2)))

an_estimator <- function(s) {
  one("kme", "skmse", "fkmse", "mkme", "mmkme", "smooth", "stack", est_skmse(),
      est_skmse(0.5), est_skmse(select = "plugin"), est_fkmse(select = "gcv"),
      est_fkmse(0.1), est_mkme(0.1), est_mmkme(), est_smooth(0.4, 1), est_kme(),
      est_stack(list(est_kme(), est_fkmse(0.1))), est_function(own_weights),
      own_weights, est_function(own_error), est_skmse(target = mixture(.(s$d))),
      est_smooth(folds = 5))
}

# A variable of hsic_test() and kme_cov(): s$n values.
a_variable <- function(s) {
  one(.(first(s)), .(first(s)), .(pts(s, d = 1)), labels(.(s$n), 3,
                                                         .(draw_seed())),
      ordered(labels(.(s$n), 2, .(draw_seed()))), rep_len(c(TRUE, FALSE),
                                                          .(s$n)),
      .(grams(s)), dist(.(pts(s, form = "matrix"))),
      frame(.(s$n), .(draw_seed()))[c("a", "h")], numbers(.(s$n),
                                                          .(draw_seed())))
}

# Formulas ------------------------------------------------------------------

# Data for the formula of the call, chosen once.
the_frame <- function(s) {
  if (is.null(s$frame)) {
    bagged <- grepl("^(smm|bag_gram)", s$entry)
    s$frame <- if (bagged && chance(0.8)) {
      call("bagged", max(s$n, 1), max(1, s$n %/% 4), draw_seed(), s$style)
    } else if (chance(if (s$extreme) 0.5 else 0.25)) {
      any_of(real_frames)
    } else {
      call("frame", s$n, draw_seed(), s$style)
    }
    data <- eval(s$frame, world)
    s$rows <- nrow(data)
    numeric <- vapply(data, is.numeric, NA)
    few <- vapply(data, \(v) length(unique(v)) <= 6L, NA)
    name <- \(x) lapply(x, as.name)
    s$columns <- name(names(data))
    s$numbers <- if (any(numeric)) name(names(data)[numeric]) else s$columns
    s$factors <- if (any(few)) name(names(data)[few]) else s$columns
  }
  s$frame
}

a_column <- function(s, kind) {
  the_frame(s)
  column <- any_of(if (chance(0.1)) s$columns else s[[kind]])
  if (!chance(0.1)) return(column)
  one(log(.(column)), I(.(column)^2), scale(.(column)), factor(.(column)),
      poly(.(column), 2), -.(column), .(column) + 0, 1, 0, offset(.(column)),
      as.Date(.(column)), nothing_there, cut(.(column), 2), .(column):.(column))
}

side <- function(s, kind, most = 3L) {
  terms <- lapply(seq_len(sample.int(most, 1L)), \(i) a_column(s, kind))
  if (chance(0.05)) terms <- c(terms, quote(.))
  Reduce(\(a, b) call("+", a, b), terms)
}

formulas <- list(
  two_samples = \(s) one(.(a_column(s, "numbers")) ~ .(a_column(s, "factors")),
                         .(a_column(s, "numbers")) ~ .(a_column(s, "factors")),
                         .(side(s, "numbers")) ~ .(a_column(s, "factors")),
                         cbind(.(a_column(s, "numbers")),
                               .(a_column(s, "numbers"))) ~
                           .(a_column(s, "factors")),
                         . ~ .(a_column(s, "factors"))),
  variables = \(s) one(.(side(s, "columns", 2L)) ~ .(side(s, "columns", 2L)),
                       .(side(s, "numbers", 2L)) ~ .(side(s, "numbers", 2L)),
                       ~ .(side(s, "columns")), . ~ .(a_column(s, "factors")),
                       ~ .(side(s, "numbers"))),
  classes = \(s) one(.(a_column(s, "factors")) ~ .(side(s, "numbers")),
                     .(a_column(s, "factors")) ~ .),
  points = \(s) one(~ .(side(s, "numbers")), ~ .(side(s, "numbers")),
                    ~ .(side(s, "numbers")), ~ .(side(s, "numbers")), ~ .,
                    ~ .(side(s, "columns")),
                    .(a_column(s, "numbers")) ~ .(side(s, "numbers"))),
  sketch = \(s) one(~ .(side(s, "numbers")), ~ .(side(s, "numbers")), ~ .,
                    ~ .(side(s, "columns")),
                    .(a_column(s, "columns")) ~ .(side(s, "numbers"))),
  instruments = \(s) one(.(a_column(s, "numbers")) ~ .(side(s, "numbers", 2L)) |
                           .(side(s, "numbers", 2L)),
                         .(a_column(s, "numbers")) ~ .(side(s, "columns", 2L)) |
                           .(side(s, "columns", 2L)),
                         .(a_column(s, "numbers")) ~ .(a_column(s, "numbers")) |
                           . - .(a_column(s, "numbers"))),
  bags = \(s) one(id ~ .(side(s, "numbers")), id ~ a + b, id ~ .,
                  .(a_column(s, "factors")) ~ .(side(s, "numbers"))),
  machine = \(s) one(y ~ .(side(s, "numbers", 2L)), g ~ a + b, y ~ a, ~ a + b,
                     .(a_column(s, "columns")) ~ .(side(s, "numbers", 2L)))
)

# Lengths -------------------------------------------------------------------

# Points of all samples together, those that blocks and permutations are for.
pooled <- function(s) {
  if (grepl("formula$", s$entry)) {
    the_frame(s)
    s$rows
  } else if (grepl("^mmd_test[.](gram|dist|kme_sketch)$|^hsic|^kme_",
                   s$entry)) {
    s$n
  } else {
    s$n + s$m
  }
}

sorts <- function(s) {
  N <- pooled(s)
  if (grepl("formula$", s$entry) && chance(0.6)) {
    return(as_it_is(a_column(s, "factors")))
  }
  one(rep_len(1:2, .(N)), rep(seq_len(.(N)), each = 2, length.out = .(N)),
      labels(.(N), 3, .(draw_seed())), rep_len(seq_len(.(max(1, s$n))), .(N)))
}

# All with one kernel.
a_mean <- function(s) {
  one(kme(.(pts(s)), kernel_rbf(1)), kme(.(pts(s)), kernel_rbf(1),
                                         .(an_estimator(s))))
}

grouped_sketch <- function(s) {
  call("pool", "kme_sketch", any_of(c(3L, 3L, 6L, 7L, 1L)))
}
paired_sketch <- function(s) call("pool", "kme_sketch",
                                  any_of(c(4L, 4L, 4L, 1L)))

some_days <- function(s) {
  call("daily", any_of(c(9, 24, 30)), draw_seed(),
       if (s$extreme) any_of(styles) else "normal")
}

labels_of <- function(s, n) {
  if (s$entry == "kme_sketch.formula" && chance(0.6)) {
    return(as_it_is(a_column(s, "factors")))
  }
  one(labels(.(n), 2, .(draw_seed())), labels(.(n), 3, .(draw_seed())),
      rep_len(c("a", "b"), .(n)), rep_len(1:2, .(n)), rep_len(c(TRUE, FALSE),
                                                              .(n)))
}

bag_count <- function(s) max(1, s$n %/% 3)

# The class of the object that a method is called on.
class_of <- function(s) {
  from_pool <- is.call(s$object) && identical(s$object[[1L]], quote(pool))
  if (from_pool) s$object[[2L]] else sub("^[^.]*[.]", "", s$entry)
}

plot_type <- function(s) {
  any_of(switch(class_of(s),
    kme = c("selection", "embedding"), kme_cov = c("spectrum", "selection"),
    kme_pca = c("scores", "spectrum"), kme_fda = c("regions", "scores"),
    kme_density = c("density", "path"), kme_landmarks = c("points", "spectrum"),
    mmd_pairwise = "matrix", mmd_test = c("null", "witness"),
    rkhs_iv = c("fit", "cv"), bag_smm = "bags", gram = "spectrum",
    "null"
  ))
}
