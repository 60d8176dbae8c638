# What shrinkage does to estimates and decisions, on data that come with R and
# the package MASS. In each part the whole data set plays the population, so
# that what is made of a small sample of it can be checked.
#
#   groups   57 school classes of nlschools, 20 to 33 pupils each: how near do
#            estimates from a few pupils of each come to the kernel mean of the
#            class, shrunk towards 0, or towards the kernel mean of all pupils
#            that were drawn?
#   nearest  a new point goes to the class with the nearest kernel mean; 5, 10,
#            20 or 40 points of each class are known.
#   fda      a new point goes where kme_fda() puts it, with the ridge that comes
#            from the shrinkage of the kernel matrix, and with a ridge of 0.001;
#            5, 10 or 20 points of each class are known.

usage <- "Usage: Rscript decisions.R [options]

  --part groups|nearest|fda|all  what to measure (all)
  --reps N   draws for each setting (at least 2; 100)
  --out DIR  folder for the tables (.)
  --quick    the smallest form: one of the data sets
  --help     this text"

study_name <- "decisions.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))

mass <- function(name) {
  if (!requireNamespace("MASS", quietly = TRUE)) {
    give_up("the package 'MASS' must be installed")
  }
  box <- new.env()
  utils::data(list = name, package = "MASS", envir = box)
  box[[name]]
}

median_rbf <- function(x) kernel_rbf(stats::median(stats::dist(x)))

# Groups --------------------------------------------------------------------

# What is shrunk, and towards what: an estimator for each target.
group_estimators <- function(pool) {
  list(
    "KME" = est_kme(),
    "S-KMSE loocv, to 0" = est_skmse(),
    "S-KMSE plugin, to 0" = est_skmse(select = "plugin"),
    "S-KMSE loocv, to all" = est_skmse(target = pool),
    "S-KMSE plugin, to all" = est_skmse(select = "plugin", target = pool),
    "F-KMSE loocv, to all" = est_fkmse(target = pool)
  )
}

study_groups <- function(reps, sizes = c(4, 8)) {
  pupils <- mass("nlschools")
  large <- names(which(table(pupils$class) >= 20))
  pupils <- pupils[pupils$class %in% large, ]
  members <- split(seq_len(nrow(pupils)), factor(pupils$class))
  x <- scale(as.matrix(pupils[c("lang", "IQ", "SES")]))
  kernel <- median_rbf(x)
  k <- kernel_matrix(x, kernel = kernel)
  # Row g: the weights of class g's estimate on all pupils.
  spread <- function(rows, weights) {
    t(mapply(\(at, w) replace(numeric(nrow(x)), at, w), rows, weights))
  }
  truth <- spread(members, 1 / lengths(members))
  losses <- function(n) {
    drawn <- lapply(members, sample, n)
    every <- unlist(drawn)
    pool <- kme(x[every, ], kernel, scale = FALSE)
    at_pool <- replace(numeric(nrow(x)), every, 1 / length(every))
    vapply(group_estimators(pool), \(estimator) {
      fits <- lapply(drawn, \(at) {
        kme(x[at, ], kernel, estimator, scale = FALSE)
      })
      apart <- spread(drawn, lapply(fits, `[[`, "weights")) - truth
      if (!is.null(estimator$target)) {
        apart <- apart + outer(vapply(fits, `[[`, 0, "share"), at_pool)
      }
      mean(rowSums((apart %*% k) * apart))
    }, 0)
  }
  do.call(rbind, lapply(sizes, \(n) {
    found <- t(replicate(reps, losses(n)))
    gains <- apply(found, 2, \(b) gain(found[, 1], b))
    data.frame(groups = length(members), n = n, of = reps,
               estimator = colnames(found), loss = colMeans(found),
               gain = gains["gain", ], gain_se = gains["se", ],
               row.names = NULL)
  }))
}

# Classes -------------------------------------------------------------------

class_data <- function() {
  biopsy <- stats::na.omit(mass("biopsy"))
  crabs <- mass("crabs")
  glass <- mass("fgl")
  window <- glass$type %in% c("WinF", "WinNF", "Veh")
  pima <- rbind(mass("Pima.tr"), mass("Pima.te"))
  shape <- log(as.matrix(crabs[4:8]))
  sets <- list(
    iris = list(iris[1:4], iris$Species),
    "crabs, shape" = list(shape - rowMeans(shape),
                          interaction(crabs$sp, crabs$sex)),
    "fgl, window or not" = list(glass[1:9], factor(window)),
    biopsy = list(biopsy[2:10], biopsy$class),
    Pima = list(pima[1:7], pima$type),
    "quakes, deep or not" = list(quakes[c("lat", "long", "mag")],
                                 factor(quakes$depth > 300))
  )
  if (this_run$quick) sets[1] else sets
}

study_nearest <- function(reps) {
  estimators <- plain_estimators
  sets <- class_data()
  do.call(rbind, lapply(names(sets), \(name) {
    x <- scale(as.matrix(sets[[name]][[1]]))
    class <- factor(sets[[name]][[2]])
    kernel <- median_rbf(x)
    members <- split(seq_along(class), class)
    rates <- replicate(reps, {
      sizes <- sample(rep_len(c(5, 10, 20, 40), length(members)))
      known <- Map(\(at, n) sample(at, min(n, length(at) - 5)), members, sizes)
      new <- setdiff(seq_along(class), unlist(known))
      if (length(new) > 200) new <- sample(new, 200)
      chosen <- vapply(estimators, \(estimator) {
        distance <- vapply(known, \(at) {
          fit <- kme(x[at, ], kernel, estimator, scale = FALSE)
          kme_inner(fit, fit) - 2 * predict(fit, x[new, ])
        }, numeric(length(new)))
        max.col(-distance, "first")
      }, integer(length(new)))
      c(colMeans(chosen != as.integer(class)[new]),
        changed = colMeans(chosen != chosen[, 1])[-1])
    })
    first <- seq_along(estimators)
    data.frame(
      data = name, points = nrow(x), columns = ncol(x), of = reps,
      estimator = names(estimators), error = rowMeans(rates[first, ]),
      less = rowMeans(rates[rep(1, 3), ] - rates[first, ]),
      less_se = apply(rates[rep(1, 3), ] - rates[first, ], 1, standard_error),
      changed = c(0, rowMeans(rates[-first, ])), row.names = NULL
    )
  }))
}

study_fda <- function(reps, sizes = c(5, 10, 20)) {
  sets <- class_data()
  cells <- expand.grid(n = sizes, data = names(sets), stringsAsFactors = FALSE)
  do.call(rbind, Map(\(name, n) {
    x <- scale(as.matrix(sets[[name]][[1]]))
    class <- factor(sets[[name]][[2]])
    members <- split(seq_along(class), class)
    rates <- replicate(reps, {
      known <- unlist(lapply(members, sample, n))
      new <- setdiff(seq_along(class), known)
      if (length(new) > 200) new <- sample(new, 200)
      fit <- kme_fda(x[known, ], class[known], median_rbf(x[known, ]),
                     scale = FALSE)
      shrunk <- predict(fit, x[new, ])$class
      fixed <- predict(update(fit, ridge = 0.001), x[new, ])$class
      linear <- tryCatch(
        predict(MASS::lda(x[known, ], class[known]), x[new, ])$class,
        error = \(e) NA
      )
      wrong <- \(chosen) mean(chosen != class[new])
      c(shrinkage = wrong(shrunk), fixed = wrong(fixed), lda = wrong(linear),
        changed = mean(shrunk != fixed))
    })
    means <- rowMeans(rates)
    data.frame(
      data = name, points = nrow(x), columns = ncol(x), n = n, of = reps,
      as.list(means), gain = means[["fixed"]] - means[["shrinkage"]],
      gain_se = standard_error(rates["fixed", ] - rates["shrinkage", ])
    )
  }, cells$data, cells$n))
}

# The run -------------------------------------------------------------------

rounded <- function(table) {
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- lapply(table[numbers], signif, 5)
  table
}

arguments <- read_options(commandArgs(TRUE), list(
  part = "all", reps = "100", out = ".", quick = FALSE
), usage)
parts <- list(groups = study_groups, nearest = study_nearest, fda = study_fda)
part <- one_of(arguments$part, "--part", c(names(parts), "all"))
reps <- whole_number(arguments$reps, "--reps", 2)
keys <- list(groups = c("groups", "n", "estimator"),
             nearest = c("data", "estimator"), fda = c("data", "n"))
if (arguments$quick) parts <- parts[-1]
folder <- output_folder(arguments$out)
use_one_thread()
for (name in if (part == "all") names(parts) else part) {
  set.seed(seed_of(name))
  found <- rounded(parts[[name]](reps))
  print(found, row.names = FALSE)
  write_table(found, folder, paste0("decisions-", name, ".csv"),
              keys[[name]])
}
