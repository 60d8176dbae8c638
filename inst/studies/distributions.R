# What shrinkage, and borrowing from the other bags, are worth where each
# observation is a sample of its own: bag_gram() and smm(), the claims beside
# Table 2 of Muandet et al. (2014, "M14" below; arXiv 1306.0842).
#
#   risk    the exact risk of the embeddings of 30 bags of 20 points, in four
#           settings that differ in how much the bags have in common.
#   groups  one-class machines on groups of points in the plane: mixtures of
#           three normals; the strange groups have other mixing proportions, or
#           normals that are turned (the designs of Muandet and Schoelkopf 2013,
#           with numbers of our own).
#   magic   one-class machines on groups of 20 gamma events of a telescope; the
#           strange groups have 4 hadrons. A stand-in for the paper's particles,
#           which are not public.
#   musk    classes of molecules, each a bag of conformations, by 10-fold
#           cross-validation; cost and bandwidth are chosen within each nine
#           tenths.

usage <- "Usage: Rscript distributions.R [options]

  --part risk|groups|magic|musk|all  what to measure (all)
  --reps N    repetitions (at least 2; 20); half as many 10-fold
              cross-validations of musk
  --data DIR  folder with musk1.data and magic04.data; without it the parts
              magic and musk are left out
  --from DIR  show the tables in DIR, compute nothing
  --out DIR   folder for the tables (.)
  --cores N   processes, with the package future.apply (1); the results do not
              depend on it
  --quick     the smallest form: the risks of two settings
  --help      this text

The data are of the UCI archive (archive.ics.uci.edu; CC BY 4.0): \"Musk
(Version 1)\", its file clean1.data under the name musk1.data, and \"MAGIC
Gamma Telescope\", its file magic04.data."

study_name <- "distributions.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
here <- dirname(here[1])
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

# What these warnings say is what the study measures.
smm <- function(...) {
  suppressWarnings(kernmean::smm(...), classes = "kernmean_warning_target")
}

# Arguments of bag_gram().
ways <- list(
  "KME" = list(estimator = "kme"), "S-KMSE" = list(estimator = "skmse"),
  "F-KMSE" = list(estimator = "fkmse"), "pooled" = list(target = "pooled"),
  "neighbours" = list(target = "neighbours"),
  "aggregate" = list(target = "aggregate")
)
levels2 <- c("linear", "rbf")

with_way <- function(door, way, ...) do.call(door, c(list(...), ways[[way]]))

# Exact risks -----------------------------------------------------------------

# A draw is list(bags, laws: what they are samples of, mixtures or the points of
# a whole population; of: the law of each bag).
move <- function(mixture, by) {
  mixture$means <- mixture$means + rep(by, each = nrow(mixture$means))
  mixture
}

whole <- function(p) {
  covariances <- vapply(p$roots, crossprod, diag(ncol(p$means)))
  list(weights = p$weights, means = p$means,
       covariances = array(covariances, c(dim(covariances)[1:2], 4)))
}

points_of <- function(p, n) {
  component <- sample.int(4, n, replace = TRUE, prob = p$weights)
  scores <- matrix(stats::rnorm(7 * n), n)
  rows <- lapply(seq_len(n), function(i) {
    p$means[component[i], ] + drop(scores[i, ] %*% p$roots[[component[i]]])
  })
  do.call(rbind, rows)
}

# Bags of 20 points from `kinds` mixtures in d columns, each bag moved by a
# normal step of standard deviation `step` in each column.
mixture_bags <- function(kinds, step, d = 5) {
  force(kinds)
  force(step)
  function(count) {
    mixtures <- replicate(kinds, draw_distribution(d), simplify = FALSE)
    mixtures <- rep_len(mixtures, count)
    steps <- lapply(seq_len(count), function(b) stats::rnorm(d, sd = step))
    list(
      bags = Map(function(p, by) points_of(p, 20) + rep(by, each = 20),
                 mixtures, steps),
      laws = Map(function(p, by) move(whole(p), by), mixtures, steps),
      of = seq_len(count)
    )
  }
}

# Bags from six classes of pixels; the population is the class.
satimage_bags <- function(count) {
  box <- new.env()
  utils::data(list = "Satellite", package = "mlbench", envir = box)
  rows <- box$Satellite
  x <- scale(as.matrix(rows[names(rows) != "classes"]))
  classes <- split(seq_len(nrow(x)), rows$classes)
  of <- rep_len(seq_along(classes), count)
  list(
    bags = lapply(of, function(k) x[sample(classes[[k]], 20), ]),
    laws = lapply(classes, function(rows) x[rows, ]), of = of
  )
}

risk_settings <- list(
  "five mixtures, shifted" = mixture_bags(5, 1),
  "one mixture, shifted" = mixture_bags(1, 2),
  "unrelated" = mixture_bags(30, 0),
  "satimage" = satimage_bags
)

# A fit's error for what its bag is a sample of.
loss_of <- function(fit, law) {
  if (inherits(law, "kme")) kme_distance(fit, law)^2 else kme_risk(fit, law)
}

# Mean over the bags, of each way.
risk_once <- function(draw, count) {
  drawn <- draw(count)
  all <- gram(do.call(rbind, drawn$bags), scale = FALSE)
  kernel <- all$kernel
  laws <- lapply(drawn$laws, function(law) {
    if (is.matrix(law)) kme(law, kernel, scale = FALSE) else law
  })
  fits_of <- function(way) {
    if (is.null(ways[[way]]$target)) {
      return(lapply(drawn$bags, function(bag) {
        with_way(kme, way, bag, kernel, scale = FALSE)
      }))
    }
    g <- with_way(bag_gram, way, drawn$bags, kernel, scale = FALSE)
    # The mixture of KMEs as weights on all points.
    apply(g$mixing, 1, function(shares) {
      weights <- rep(shares / g$sizes, g$sizes)
      kme(all, estimator = est_function(function(sample) weights))
    })
  }
  vapply(names(ways), function(way) {
    mean(mapply(loss_of, fits_of(way), laws[drawn$of]))
  }, 0)
}

run_risk <- function(reps, cores, count, quick) {
  there <- names(risk_settings)
  if (quick) there <- there[1:2]
  if (!requireNamespace("mlbench", quietly = TRUE)) {
    say("Not examined, as the package mlbench is not installed: satimage.")
    there <- setdiff(there, "satimage")
  }
  do.call(rbind, lapply(there, function(setting) {
    message("risk: ", setting)
    set.seed(seed_of("risk", setting))
    losses <- over(draw_seeds(reps), function(seed) {
      set.seed(seed)
      risk_once(risk_settings[[setting]], count)
    }, cores)
    losses <- do.call(rbind, losses)
    gains <- apply(losses, 2, gain, a = losses[, "KME"])
    data.frame(setting = setting, way = names(ways), risk = colMeans(losses),
               gain = gains["gain", ], se = gains["se", ], reps = reps,
               row.names = NULL)
  }))
}

# Strange groups --------------------------------------------------------------

corners <- rbind(c(-1.7, -1), c(1.7, -1), c(0, 2))

# Groups of 10 to 30 points; `roots` turns standard normals into those of the
# three components.
plane_group <- function(shares, root) {
  n <- sample(10:30, 1)
  component <- sample.int(3, n, replace = TRUE, prob = shares)
  corners[component, ] + matrix(stats::rnorm(2 * n), n) %*% root
}

turned <- function(angle) {
  diag(c(1.2, 0.3)) %*% rbind(c(cos(angle), sin(angle)),
                              c(-sin(angle), cos(angle)))
}

usual_shares <- list(c(0.33, 0.64, 0.03), c(0.33, 0.03, 0.64))
round_root <- diag(sqrt(0.2), 2)

groups_of <- function(count, one) lapply(seq_len(count), function(i) one())

# Each draws list(train, normal, strange) of as many groups as `counts` says.
group_designs <- list(
  "mixing proportions" = list(scale = FALSE, draw = function(counts) {
    usual <- function() plane_group(sample(usual_shares, 1)[[1]], round_root)
    odd <- function() plane_group(c(0.33, 0.33, 0.33), round_root)
    Map(groups_of, counts, list(usual, usual, odd))
  }),
  "turned normals" = list(scale = FALSE, draw = function(counts) {
    at <- function(angle) {
      function() plane_group(sample(usual_shares, 1)[[1]], turned(angle))
    }
    Map(groups_of, counts, list(at(0), at(0), at(pi / 4)))
  })
)

# Events without replacement.
telescope <- function(folder) {
  data <- utils::read.csv(file.path(folder, "magic04.data"), header = FALSE)
  x <- as.matrix(data[1:10])
  gamma <- which(data[[11]] == "g")
  hadron <- which(data[[11]] == "h")
  list(scale = TRUE, draw = function(counts) {
    gamma <- sample(gamma)
    hadron <- sample(hadron)
    take <- function(n, m) {
      g <- gamma[seq_len(n)]
      h <- hadron[seq_len(m)]
      gamma <<- gamma[-seq_len(n)]
      if (m > 0) hadron <<- hadron[-seq_len(m)]
      x[c(g, h), ]
    }
    usual <- function() take(20, 0)
    Map(groups_of, counts, list(usual, usual, function() take(16, 4)))
  })
}

# The area under the ROC curve: the share of pairs of a strange and a normal
# group in which the strange one has the smaller decision value, ties counted as
# one half.
area_under_curve <- function(decision, strange) {
  ranks <- rank(-decision)[strange]
  count <- length(ranks)
  (mean(ranks) - (count + 1) / 2) / (length(decision) - count)
}

# The AUC of each way and level under each protocol: at the median distances; s,
# that of the groups, or a quarter of it; all by smm()'s rule.
auc_once <- function(design, counts) {
  drawn <- design$draw(counts)
  folds <- sample(rep_len(1:5, length(drawn$train)))
  new <- c(drawn$normal, drawn$strange)
  strange <- rep(c(FALSE, TRUE), lengths(drawn[c("normal", "strange")]))
  auc <- function(fit, new) {
    area_under_curve(predict(fit, new, type = "decision"), strange)
  }
  rows <- lapply(names(ways), function(way) {
    plain <- with_way(bag_gram, way, drawn$train, scale = design$scale)
    do.call(rbind, lapply(levels2, function(level2) {
      g <- update(plain, level2 = level2)
      values <- predict(g, new)
      found <- c("nu 0.1" = auc(smm(g, nu = 0.1), values))
      if (level2 == "rbf") {
        g <- update(g, bandwidth2 = g$level2$bandwidth / 4)
        # exp(-r / (2 (s / 4)^2))
        values <- values^16
      }
      found["nu 0.1, s / 4"] <- auc(smm(g, nu = 0.1), values)
      fit <- with_way(smm, way, drawn$train, level2 = level2, folds = folds,
                      scale = design$scale)
      found["all by rule"] <- auc(fit, new)
      data.frame(way = way, level2 = level2, protocol = names(found),
                 auc = found)
    }))
  })
  do.call(rbind, rows)
}

run_groups <- function(designs, counts, reps, cores) {
  do.call(rbind, lapply(names(designs), function(name) {
    message("groups: ", name)
    set.seed(seed_of("groups", name))
    found <- over(draw_seeds(reps), function(seed) {
      set.seed(seed)
      auc_once(designs[[name]], counts)
    }, cores)
    found <- cbind(rep = rep(seq_len(reps), vapply(found, nrow, 0L)),
                   do.call(rbind, found))
    cbind(data = name, summarize_pairs(found, "auc", "rep"))
  }))
}

# Of each protocol, level and way the mean over units (repetitions), how much
# more it is than that of the KME, and how much more of that there is with "rbf"
# than with "linear"; all with paired standard errors. `found` has a row for
# each unit of each, the units in one order.
summarize_pairs <- function(found, value, unit) {
  parts <- split(found, factor(found$protocol, unique(found$protocol)))
  table <- do.call(rbind, lapply(parts, function(part) {
    wide <- lapply(levels2, function(level2) {
      vapply(names(ways), function(way) {
        part[[value]][part$way == way & part$level2 == level2]
      }, numeric(length(unique(part[[unit]]))))
    })
    more <- lapply(wide, function(values) values - values[, "KME"])
    extra <- more[[2]] - more[[1]]
    se <- function(values) apply(values, 2, standard_error)
    columns <- function(i) {
      data.frame(
        protocol = part$protocol[1], level2 = levels2[i], way = names(ways),
        value = colMeans(wide[[i]]), se = se(wide[[i]]),
        more = colMeans(more[[i]]), more_se = se(more[[i]]),
        extra = if (i == 2) colMeans(extra) else NA,
        extra_se = if (i == 2) se(extra) else NA, units = nrow(wide[[i]])
      )
    }
    rbind(columns(1), columns(2))
  }))
  rownames(table) <- NULL
  table
}

# Molecules -------------------------------------------------------------------

musk_data <- function(folder) {
  data <- utils::read.csv(file.path(folder, "musk1.data"), header = FALSE)
  id <- factor(data[[1]], unique(data[[1]]))
  list(bags = split.data.frame(as.matrix(data[3:168]), id),
       y = factor(data[[169]][!duplicated(id)], 0:1, c("no musk", "musk")))
}

shuffled_folds <- function(y, folds) {
  of <- integer(length(y))
  for (class in levels(y)) {
    rows <- which(y == class)
    of[rows[sample.int(length(rows))]] <- rep_len(seq_len(folds), length(rows))
  }
  of
}

# Nine tenths and one tenth: for each way, level and multiple of the median
# distance, the score within the nine tenths (the best of the costs), and which
# molecules of the tenth get their class.
musk_fold <- function(data, out, factors) {
  train <- data$bags[!out]
  y <- data$y[!out]
  inner <- shuffled_folds(y, 5)
  median <- gram(do.call(rbind, train), scale = FALSE)$kernel$bandwidth
  cells <- expand.grid(way = names(ways), factor = factors,
                       stringsAsFactors = FALSE)
  rows <- Map(function(way, factor) {
    g <- with_way(bag_gram, way, train, kernel_rbf(factor * median),
                  scale = FALSE)
    do.call(rbind, lapply(levels2, function(level2) {
      fit <- smm(update(g, level2 = level2), y, cost = c(1, 10, 100),
                 folds = inner)
      data.frame(way = way, factor = factor, level2 = level2,
                 score = fit$cv$score[fit$cv$chosen], bag = which(out),
                 right = predict(fit, data$bags[out]) == data$y[out])
    }))
  }, cells$way, cells$factor)
  do.call(rbind, rows)
}

musk_once <- function(data, factors) {
  folds <- shuffled_folds(data$y, 10)
  found <- do.call(rbind, lapply(1:10, function(fold) {
    cbind(fold = fold, musk_fold(data, folds == fold, factors))
  }))
  # The multiple that is best within the nine tenths: of equals the nearest to
  # 1, as smm() takes it.
  cells <- split(found, found[c("fold", "way", "level2")], drop = TRUE)
  chosen <- do.call(rbind, lapply(cells, function(cell) {
    best <- order(signif(cell$score, 10), abs(log(cell$factor)))[1]
    cell <- cell[cell$factor == cell$factor[best], ]
    cbind(cell, protocol = "chosen")
  }))
  found$protocol <- as.character(found$factor)
  rbind(found, chosen)
}

run_musk <- function(data, reps, cores) {
  factors <- c(0.5, 1, 2)
  set.seed(seed_of("musk"))
  seeds <- draw_seeds(reps)
  found <- over(seq_len(reps), function(rep) {
    message("musk: run ", rep)
    set.seed(seeds[rep])
    cbind(rep = rep, musk_once(data, factors))
  }, cores)
  found <- do.call(rbind, found)
  by <- function(unit) {
    means <- stats::aggregate(found["right"], found[c(unit, "way", "level2",
                                                      "protocol")], mean)
    summarize_pairs(means[order(means[[unit]]), ], "right", unit)
  }
  table <- by("rep")
  # The same molecules are in all runs: what others would give is less sure.
  table$more_se_bags <- by("bag")$more_se
  cbind(data = "musk", table)
}

# Claims ----------------------------------------------------------------------

# "Shrinkage never hurts, and helps more with the non-linear kernel":
# differences that exceed two paired standard errors count. What hurts less does
# not help more.
examine <- function(table) {
  rbf <- table[table$level2 == "rbf" & table$way != "KME", ]
  key <- c("data", "protocol", "way")
  linear <- table[table$level2 == "linear", ]
  linear <- linear[match(do.call(paste, rbf[key]), do.call(paste, linear[key])),
                   ]
  helps <- clear_sign(rbf$more, rbf$more_se)
  hurts <- clear_sign(linear$more, linear$more_se) < 0 | helps < 0
  extra <- clear_sign(rbf$extra, rbf$extra_se)
  data.frame(
    rbf[key], linear = linear$more, linear_se = linear$more_se, rbf = rbf$more,
    rbf_se = rbf$more_se, never_hurts = ifelse(hurts, "NOT HELD", "HELD"),
    more_with_rbf = ifelse(extra == 0, "NOT CLEAR",
                           ifelse(extra > 0 & helps > 0, "HELD", "NOT HELD"))
  )
}

# Output ----------------------------------------------------------------------

rounded <- function(table) {
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- lapply(table[numbers], signif, 5)
  table
}

# What the paper prints, in the order of `ways`.
printed <- function(method, level2) {
  table <- utils::read.csv(file.path(here, "printed", "muandet2014_table2.csv"))
  mine <- table[table$method == method & table$kernel == level2, ]
  mine$value[match(names(ways), c(kme = "KME", skmse = "S-KMSE",
                                  fkmse = "F-KMSE")[mine$estimator])]
}

show_risk <- function(folder) {
  table <- read_table(file.path(folder, "distributions-risk.csv"))
  marks <- mark_signs(clear_sign(table$gain, table$se))
  cells <- matrix(paste0(sprintf("%.0f", table$gain), marks), length(ways))
  dimnames(cells) <- list(names(ways), unique(table$setting))
  say("Gain in exact risk over the KME in %, 30 bags of 20 points, mean of ",
      table$reps[1], " repetitions; * better, ! worse by more than 2 paired ",
      "standard errors (the largest is ", signif(max(table$se), 2), ").")
  print_block("", cells[-1, , drop = FALSE], 24)
}

show_machines <- function(folder, name, method, what) {
  table <- read_table(file.path(folder, name))
  for (data in unique(table$data)) {
    for (level2 in levels2) {
      mine <- table[table$data == data & table$level2 == level2, ]
      marks <- mark_signs(clear_sign(mine$more, mine$more_se))
      columns <- unique(mine$protocol)
      cells <- matrix(paste0(sprintf("%.3f", mine$value), marks), length(ways))
      paper <- printed(method, level2)
      paper <- ifelse(is.na(paper), "", sprintf("%.3f ", paper))
      cells <- cbind(cells, paper)
      errors <- tapply(mine$more_se, mine$protocol, max)[columns]
      cells <- rbind(cells, c(sprintf("%.3f ", errors), ""))
      dimnames(cells) <- list(c(names(ways), "paired s.e. <="),
                              c(columns, "M14, its data"))
      print_block(paste0(data, ", ", level2, " level 2: ", what, ", ",
                         mine$units[1], " repetitions"), cells,
                  max(nchar(columns), 13) + 2)
    }
  }
  print_claims(examine(table))
}

print_claims <- function(claims) {
  claims <- claims[claims$way %in% c("S-KMSE", "F-KMSE"), ]
  for (i in seq_len(nrow(claims))) {
    of <- claims[i, ]
    say(of$data, ", ", of$protocol, ", ", of$way, ": never hurts: ",
        of$never_hurts, sprintf(" (linear %+.3f +- %.3f, rbf %+.3f +- %.3f)",
                                of$linear, of$linear_se, of$rbf, of$rbf_se),
        "; helps more with rbf: ", of$more_with_rbf, ".", indent = 2)
  }
  cat("\n")
}

# Of all parts whose tables are there, those of earlier runs too; NULL if none.
claims_in <- function(folder) {
  files <- file.path(folder, tables[parts != "risk"])
  files <- files[file.exists(files)]
  do.call(rbind, lapply(files, function(file) examine(read_table(file))))
}

show_verdict <- function(claims) {
  for (way in intersect(c("S-KMSE", "F-KMSE"), claims$way)) {
    mine <- claims[claims$way == way, ]
    held <- function(what) {
      count <- sum(mine[[what]] == "HELD")
      paste(if (count == nrow(mine)) "HELD:" else "NOT HELD: only", "in", count,
            "of", nrow(mine), "combinations of data and protocol")
    }
    say("M14, \"shrinkage never hurts\", ", way, ": ", held("never_hurts"),
        "; \"helps more with the non-linear kernel\": ", held("more_with_rbf"),
        ".")
  }
}

# The run ---------------------------------------------------------------------

at_hand <- function(part, folder) {
  file <- c(magic = "magic04.data", musk = "musk1.data")[part]
  is.na(file) || nzchar(folder) && file.exists(file.path(folder, file))
}

parts <- c("risk", "groups", "magic", "musk")
tables <- stats::setNames(paste0("distributions-", parts, ".csv"), parts)

run_part <- function(part, chosen, reps, cores) {
  counts <- c(train = 100, normal = 100, strange = 30)
  if (part == "groups") counts[] <- 50
  switch(
    part, risk = run_risk(reps, cores, 30, chosen$quick),
    groups = run_groups(group_designs[1:2], counts, reps, cores),
    magic = run_groups(list(magic = telescope(chosen$data)), counts, reps,
                       cores),
    musk = run_musk(musk_data(chosen$data), max(2, reps %/% 2), cores)
  )
}

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", reps = "20", data = "", from = "", out = ".", cores = "1",
    quick = FALSE
  ), usage)
  part <- one_of(chosen$part, "--part", c(parts, "all"))
  if (part != "all") parts <- part
  reps <- whole_number(chosen$reps, "--reps", 2)
  cores <- whole_number(chosen$cores, "--cores", 1)
  folder <- chosen$from
  if (nzchar(folder)) {
    parts <- parts[file.exists(file.path(folder, tables[parts]))]
  } else {
    if (chosen$quick) parts <- "risk"
    there <- vapply(parts, at_hand, NA, chosen$data)
    for (name in parts[!there]) {
      say("Left out, as its data are not at hand (see --help): ", name, ".")
    }
    parts <- parts[there]
    if (!requireNamespace("kernlab", quietly = TRUE)) {
      say("The package kernlab is not installed: the part risk only.")
      parts <- intersect(parts, "risk")
    }
    folder <- output_folder(chosen$out)
    use_one_thread()
    cores <- start_processes(cores)
    key <- c("setting", "way", "data", "protocol", "level2")
    for (name in parts) {
      write_table(rounded(run_part(name, chosen, reps, cores)), folder,
                  tables[[name]], if (name == "risk") key[1:2] else key[-1])
    }
    claims <- claims_in(folder)
    if (!is.null(claims)) {
      write_table(claims, folder, "distributions-claims.csv",
                  c("data", "protocol", "way"))
    }
  }
  if ("risk" %in% parts) show_risk(folder)
  for (name in setdiff(parts, c("risk", "musk"))) {
    show_machines(folder, tables[[name]], "ocsmm_auc", "AUC")
  }
  if ("musk" %in% parts) {
    show_machines(folder, tables[["musk"]], "smm_accuracy", "accuracy")
  }
  show_verdict(claims_in(folder))
}

main(commandArgs(trailingOnly = TRUE))
