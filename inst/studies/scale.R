# What a sketch loses, and what it costs.
#
#   accuracy  estimates from sketches of 5,000 points beside those from the
#             points: the kernel mean, its risk and that of F-KMSE (the points
#             come from mixtures of normals, so that risks are exact), and the
#             first ten eigenvalues of the covariance operator.
#   power     the two-sample test of 2,500 and 2,500 points: a shift of one
#             column of ten, a few points that come from elsewhere, and no
#             difference at all, where the share of rejections is the level.
#   time      processor time and peak memory of sketches of 10^5 to 10^7 rows of
#             10 columns, 300 landmarks, from ten binary files. The files are
#             written into a temporary folder and deleted. Each sketch is made
#             by a process of its own, on one thread.
#   workers   10^6 rows in eight files with 1, 2, ... processes; and on paper
#             with up to 1,000, from the bytes and seconds that were measured.

usage <- "Usage: Rscript scale.R [options]

  --part accuracy|power|time|workers|all   what to measure (all)
  --reps N     samples for each setting (10; ten times as many for the power)
  --rows N     the most rows in part time (10000000: 0.8 GB on disk)
  --cores N    the most processes in part workers (2)
  --temp DIR   folder for the files of rows (R's own temporary folder)
  --out DIR    folder for the tables (.)
  --quick      the smallest form: a hundred points
  --help       this text"

study_name <- "scale.R"
here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
script <- normalizePath(here[1])
here <- dirname(script)
source(file.path(here, "common.R"))
source(file.path(here, "mixtures.R"))

methods <- c("uniform", "rpcholesky")
columns <- 10

sketch_of <- function(x, kernel, m, method, ...) {
  landmarks <- kme_landmarks(x, m, kernel, method = method, scale = FALSE)
  kme_sketch(x, landmarks, ..., progress = FALSE)
}

# Accuracy --------------------------------------------------------------------

# 40 small clusters in 10 columns, the j-th with a share of 1 / j: many are
# seen by a hundred points or fewer.
draw_clusters <- function(n) {
  count <- min(40, n %/% 10)
  means <- matrix(stats::rnorm(count * columns, sd = 3), count)
  weights <- 1 / seq_len(count)
  weights <- weights / sum(weights)
  component <- sample.int(count, n, replace = TRUE, prob = weights)
  covariance <- array(diag(0.25, columns), c(columns, columns, count))
  list(x = means[component, ] + stats::rnorm(n * columns, sd = 0.5),
       mixture = list(weights = weights, means = means,
                      covariances = covariance))
}
distributions <- list("four normals" = \(n) draw_sample(5, n),
                      "40 clusters" = draw_clusters)

eigenvalues <- function(x, kernel) {
  given <- if (missing(kernel)) list(x) else list(x, kernel, scale = FALSE)
  do.call(kme_pca, c(given, ncomp = 10))$values
}

# A row for each m and method, of one sample.
compare_sketches <- function(sample, kernel, sizes) {
  x <- sample$x
  estimators <- list(est_kme(), est_fkmse(select = "gcv"))
  exact <- lapply(estimators, \(e) kme(x, kernel, e, scale = FALSE))
  risks <- vapply(exact, kme_risk, 0, sample$mixture)
  values <- eigenvalues(x, kernel)
  cells <- expand.grid(method = methods, m = sizes, stringsAsFactors = FALSE)
  do.call(rbind, Map(\(method, m) {
    sketch <- sketch_of(x, kernel, m, method)
    fits <- lapply(estimators, \(e) kme(sketch, estimator = e))
    apart <- kme_distance(fits[[1]], exact[[1]])
    data.frame(
      method, m, lost = sketch$landmarks[[1]]$lost,
      apart = apart^2 / exact[[1]]$norm2, of_error = apart^2 / risks[1],
      kme = kme_risk(fits[[1]], sample$mixture) / risks[1],
      fkmse = kme_risk(fits[[2]], sample$mixture) / risks[2],
      fkmse_gain = 1 - risks[2] / risks[1],
      eigen = max(abs(eigenvalues(sketch) / values - 1))
    )
  }, cells$method, cells$m))
}

study_accuracy <- function(reps, n, sizes) {
  settings <- expand.grid(times = c(1, 0.5), data = names(distributions),
                          stringsAsFactors = FALSE)
  do.call(rbind, Map(\(times, data) {
    message("accuracy: ", data, ", bandwidth ", times, " x median")
    set.seed(seed_of("accuracy", data, times))
    found <- do.call(rbind, lapply(seq_len(reps), \(i) {
      sample <- distributions[[data]](n)
      median <- kme(sample$x, kernel_rbf("median"), scale = FALSE)$kernel
      compare_sketches(sample, kernel_rbf(times * median$bandwidth), sizes)
    }))
    groups <- split(found, list(found$method, found$m))
    do.call(rbind, lapply(groups, \(rows) {
      measured <- rows[-(1:2)]
      se <- vapply(rows[c("kme", "fkmse")], standard_error, 0)
      data.frame(data, times, n, m = rows$m[1], method = rows$method[1],
                 reps, as.list(colMeans(measured)), kme_se = se[["kme"]],
                 fkmse_se = se[["fkmse"]])
    }))
  }, settings$times, settings$data))
}

# Power -----------------------------------------------------------------------

normals <- function(n) matrix(stats::rnorm(n * columns), n)
differences <- list(
  none = \(y) y,
  shift = \(y) {
    y[, 1] <- y[, 1] + 0.09
    y
  },
  rare = \(y) {
    from <- seq_len(ceiling(0.012 * nrow(y)))
    y[from, ] <- 3 + y[from, ] / 2
    y
  }
)

# p-values of one pair of samples; `bin` rows are a bin of the permutation test.
test_sketches <- function(x, y, kernel, sizes, bin, B) {
  z <- rbind(x, y)
  groups <- rep(c("x", "y"), c(nrow(x), nrow(y)))
  exact <- mmd_test(x, y, kernel, filter = "none", B = B,
                    scale = FALSE)$p.value
  cells <- expand.grid(method = methods, m = sizes, stringsAsFactors = FALSE)
  do.call(rbind, Map(\(method, m) {
    sketch <- sketch_of(z, kernel, m, method, groups = groups, bin = bin)
    bins <- mmd_test(sketch, B = B)
    spectrum <- mmd_test(sketch, B = 5 * B,
                         control = test_control(null = "spectrum"))
    data.frame(method, m, exact, bins = bins$p.value,
               spectrum = spectrum$p.value)
  }, cells$method, cells$m))
}

study_power <- function(reps, n, sizes, bin, B) {
  kernel <- kernel_rbf(sqrt(2 * columns))
  do.call(rbind, lapply(names(differences), \(difference) {
    message("power: ", difference)
    set.seed(seed_of("power", difference))
    found <- do.call(rbind, lapply(seq_len(reps), \(i) {
      test_sketches(normals(n / 2), differences[[difference]](normals(n / 2)),
                    kernel, sizes, bin, B)
    }))
    rejected <- as.data.frame(found[c("exact", "bins", "spectrum")] <= 0.05)
    groups <- split(rejected, list(found$method, found$m))
    do.call(rbind, lapply(names(groups), \(name) {
      rows <- groups[[name]]
      cell <- found[match(name, paste(found$method, found$m, sep = ".")), ]
      data.frame(difference, n, m = cell$m, method = cell$method, bin, reps,
                 as.list(colMeans(rows)),
                 bins_less = mean(rows$exact - rows$bins),
                 bins_less_se = standard_error(rows$exact - rows$bins),
                 spectrum_less = mean(rows$exact - rows$spectrum),
                 spectrum_less_se = standard_error(rows$exact - rows$spectrum))
    }))
  }))
}

# Rows on disk ----------------------------------------------------------------

chunk <- 50000

write_rows <- function(path, rows) {
  file <- file(path, "wb")
  on.exit(close(file))
  while (rows > 0) {
    writeBin(stats::rnorm(columns * min(rows, chunk)), file)
    rows <- rows - chunk
  }
}

write_parts <- function(folder, rows, parts) {
  paths <- file.path(folder, sprintf("part-%02d.bin", seq_len(parts)))
  set.seed(seed_of("rows", rows))
  for (path in paths) write_rows(path, rows / parts)
  paths
}

# What `read` of kme_sketch() is given: a function that gives chunk after chunk.
# Nothing from outside its arguments, so that any process can be sent it.
read_rows <- function(path) {
  columns <- 10
  chunk <- 50000
  file <- file(path, "rb")
  names <- paste0("x", seq_len(columns))
  function() {
    values <- readBin(file, "double", columns * chunk)
    if (length(values) == 0) {
      close(file)
      return(NULL)
    }
    matrix(values, ncol = columns, dimnames = list(NULL, names))
  }
}

# The median distance of normals in ten columns is near 4.4.
normal_landmarks <- function(m) {
  set.seed(1)
  pilot <- normals(max(2 * m, 20000))
  colnames(pilot) <- paste0("x", seq_len(columns))
  kme_landmarks(pilot, m, kernel_rbf(4.4), scale = FALSE)
}

temporary_folder <- function(within) {
  folder <- tempfile("scale-", if (nzchar(within)) within else tempdir())
  output_folder(folder)
}

# Time and memory -------------------------------------------------------------

# Megabytes of this process as Linux counts them; NA elsewhere.
memory <- function(field) {
  if (!file.exists("/proc/self/status")) return(NA_real_)
  line <- grep(field, readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}

processor <- function(time) sum(time[c("user.self", "sys.self")])

# In a process of its own: `job` has the paths, the landmarks and `second`.
measure_job <- function(job) {
  sketch <- \(paths) {
    kme_sketch(as.list(paths), job$landmarks, read = read_rows,
               moments = 1 + job$second, chunk = chunk, progress = FALSE)
  }
  # Loads what is loaded with the first parts.
  sketch(job$small)
  gc(FALSE)
  before <- memory("^VmRSS")
  time <- system.time(made <- sketch(job$paths))
  peak <- memory("^VmHWM")
  read <- system.time(for (path in job$paths) {
    give <- read_rows(path)
    while (!is.null(give())) NULL
  })
  data.frame(rows = made$n, columns, m = job$landmarks$m,
             second = job$second, seconds = processor(time),
             elapsed = time[["elapsed"]], reading = processor(read),
             before, peak, more = peak - before)
}

in_own_process <- function(job, folder) {
  box <- file.path(folder, "job.rds")
  saveRDS(job, box)
  rscript <- file.path(R.home("bin"), "Rscript")
  status <- system2(rscript, shQuote(c(script, "--job", box)))
  if (status != 0) give_up("a sketch failed in its own process")
  readRDS(box)
}

# Seconds over those of the straight line through the fewest and the most rows:
# handing out ten parts takes as long for few rows as for many.
of_line <- function(rows, seconds) {
  ends <- c(which.min(rows), which.max(rows))
  slope <- diff(seconds[ends]) / diff(rows[ends])
  seconds / (seconds[ends[1]] + slope * (rows - rows[ends[1]]))
}

study_time <- function(sizes, m, within) {
  folder <- temporary_folder(within)
  on.exit(unlink(folder, recursive = TRUE))
  landmarks <- normal_landmarks(m)
  small <- file.path(folder, "small.bin")
  write_rows(small, 10)
  found <- do.call(rbind, lapply(sizes, \(rows) {
    message("time: ", rows, " rows")
    paths <- write_parts(folder, rows, 10)
    on.exit(unlink(paths))
    do.call(rbind, lapply(c(FALSE, TRUE), \(second) {
      in_own_process(list(paths = paths, small = small, landmarks = landmarks,
                          second = second), folder)
    }))
  }))
  found$per_million <- found$seconds / found$rows * 1e6
  found$of_line <- stats::ave(seq_len(nrow(found)), found$second, FUN = \(i) {
    of_line(found$rows[i], found$seconds[i])
  })
  found[order(found$second), ]
}

# Workers ---------------------------------------------------------------------

shipped <- function(object) length(serialize(object, NULL))

# Seconds of the clock and of this process's processor, the least of three:
# other work on the machine only adds.
clock <- function(f) {
  times <- vapply(1:3, \(i) {
    time <- system.time(f())
    c(time[["elapsed"]], processor(time))
  }, numeric(2))
  apply(times, 1, min)
}

# Seconds of a million rows with each number of processes, and those of handing
# out parts that are next to empty.
time_workers <- function(paths, small, landmarks, cores) {
  # For the processes that are started: one thread each, as here; and messages
  # of some kilobytes that do not wait for one another.
  Sys.setenv(OMP_NUM_THREADS = 1)
  options(socketOptions = "no-delay")
  sketch <- function(paths) {
    kme_sketch(as.list(paths), landmarks, read = read_rows, progress = FALSE)
  }
  do.call(rbind, lapply(seq_len(cores), \(workers) {
    before <- future::plan(future::multisession, workers = workers)
    on.exit(future::plan(before))
    # The first call starts processes and loads the package there.
    sketch(small)
    all <- clock(\() sketch(paths))
    few <- clock(\() sketch(small))
    data.frame(workers, elapsed = all[1], processor = all[2],
               handing_out = few[1], handing_out_processor = few[2])
  }))
}

# Seconds with `workers` processes of which each makes one part, and one process
# that hands them out and adds up. `line`: bytes a second at that one.
on_paper <- function(rows, workers, each, line) {
  once <- each$request + each$answer
  computing <- rows / workers / each$rate
  alone <- rows / each$rate
  serving <- workers * (once / line + each$merge + each$handing_out)
  data.frame(rows, workers, request_kb = each$request / 1e3,
             answer_kb = each$answer / 1e3, computing, serving,
             sending = workers * once / line, merging = workers * each$merge,
             seconds = computing + serving,
             speedup = alone / (computing + serving))
}

study_workers <- function(rows, m, cores, within) {
  if (!has_processes()) return(NULL)
  folder <- temporary_folder(within)
  on.exit(unlink(folder, recursive = TRUE))
  parts <- 8
  landmarks <- normal_landmarks(m)
  paths <- write_parts(folder, rows, parts)
  small <- file.path(folder, sprintf("small-%d.bin", seq_len(parts)))
  for (path in small) write_rows(path, 10)
  message("workers: ", rows, " rows")
  measured <- time_workers(paths, small, landmarks, cores)
  sketch <- kme_sketch(as.list(small), landmarks, read = read_rows,
                       progress = FALSE)
  empty <- sketch
  empty$sums <- list()
  merging <- system.time(for (i in 1:20) both <- sketch + sketch)
  each <- list(
    request = shipped(list(empty, small[1], read_rows)),
    answer = shipped(kernmean:::bare_state(list(sketch = sketch))),
    merge = processor(merging) / 20,
    handing_out = measured$handing_out_processor[cores] / parts,
    # One process is this one.
    rate = rows / measured$processor[1]
  )
  measured$speedup <- measured$elapsed[1] / measured$elapsed
  plan <- expand.grid(workers = c(1, 10, 100, 1000), rows = c(1e9, 1e10))
  paper <- do.call(rbind, Map(on_paper, plan$rows, plan$workers,
                              list(each), 125e6))
  list(measured = cbind(rows, m, parts, measured),
       paper = cbind(paper, m, merge = each$merge,
                     handing_out = each$handing_out, rate = each$rate))
}

# The run ---------------------------------------------------------------------

rounded <- function(table) {
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- lapply(table[numbers], signif, 4)
  rownames(table) <- NULL
  table
}

show <- function(table, out, name) {
  if (is.null(table)) return(invisible())
  table <- rounded(table)
  print(table, row.names = FALSE)
  write_table(table, out, paste0("scale-", name, ".csv"))
}

main <- function(args) {
  chosen <- read_options(args, list(
    part = "all", reps = "10", rows = "10000000", cores = "2", temp = "",
    out = ".", quick = FALSE, job = ""
  ), usage)
  use_one_thread()
  # What in_own_process() starts.
  if (nzchar(chosen$job)) {
    return(saveRDS(measure_job(readRDS(chosen$job)), chosen$job))
  }
  quick <- chosen$quick
  parts <- c("accuracy", "power", "time", "workers")
  part <- one_of(chosen$part, "--part", c(parts, "all"))
  reps <- whole_number(chosen$reps, "--reps", 3)
  cores <- whole_number(chosen$cores, "--cores", 1)
  rows <- suppressWarnings(as.numeric(chosen$rows))
  if (!isTRUE(rows >= 1000)) give_up("--rows must be a number from 1000 on")
  out <- output_folder(chosen$out)
  if (quick) {
    rows <- 10000
    cores <- 1
  }
  asked <- \(name) part %in% c(name, "all")
  # Its samples are too large to be computed again in a short time.
  m <- if (quick) 20 else c(50, 100, 200, 300, 500)
  options(width = 200)
  if (asked("accuracy")) {
    show(study_accuracy(reps, if (quick) 100 else 5000, m), out, "accuracy")
  }
  if (asked("power") && !quick) {
    found <- study_power(10 * reps, 5000, setdiff(m, c(200, 500)), 25, 199)
    show(found, out, "power")
  }
  landmarks <- if (quick) 30 else 300
  if (asked("time")) {
    sizes <- unique(rows / c(if (!quick) 100, 10, 1))
    show(study_time(sizes, landmarks, chosen$temp), out, "time")
  }
  if (asked("workers")) {
    found <- study_workers(min(rows, 1e6), landmarks, cores, chosen$temp)
    show(found$measured, out, "workers")
    show(found$paper, out, "paper")
  }
}

# That few landmarks lose much is what is measured.
suppressWarnings(main(commandArgs(trailingOnly = TRUE)),
                 classes = "kernmean_warning_projection")
