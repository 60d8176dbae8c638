# Rscript bench/streams.R [days]
# A day of 20,000 rows for a monitor of 1,000 days, seen by 100 landmarks:
# update() against judging all days anew, as a ratio in one run, and what of the
# time is the sketch of the day's rows; the size of the monitor.

here <- grep("^--file=", commandArgs(), value = TRUE)
here <- gsub("~+~", " ", sub("^--file=", "", here), fixed = TRUE)
source(file.path(dirname(here), "helpers.R"))
days <- as.integer(commandArgs(trailingOnly = TRUE))
days <- if (length(days)) days[1L] else 1000L

set.seed(1)
day_of <- function(name, n = 20000L) {
  size <- rnorm(n)
  data.frame(day = name, size, time = 0.8 * size + 0.6 * rnorm(n) +
               rnorm(1, sd = 0.02), queue = rnorm(n))
}
landmarks <- kme_landmarks(day_of("a")[-1L], 100)
sketch_of <- \(rows) kme_sketch(rows, landmarks, groups = "day", moments = 2)
# Days of few rows, which cost the same once they are sketched.
names <- sprintf("d%04d", seq_len(days + 1L))
past <- sketch_of(do.call(rbind, lapply(names[seq_len(days)], day_of, n = 200)))
today <- day_of(names[days + 1L])
heading(sprintf("kme_monitor(), %d days", days))
all <- system.time(monitor <- kme_monitor(past, reference = 30))[["elapsed"]]
sketched <- system.time(sketch <- sketch_of(today))[["elapsed"]]
times <- vapply(1:5, \(i) {
  system.time(update(monitor, sketch))[["elapsed"]]
}, 1)
row("all days anew", all)
row("sketch of a day", sketched)
row("update() with it", median(times))
bar("update() in s", median(times), 0.2, at_least = FALSE)
bar("all days anew / update()", all / median(times), 100)
evidence <- as.double(object.size(monitor$evidence)) / 1e6
size <- as.double(object.size(monitor)) / 1e6
cat(sprintf("monitor: %.1f MB, of them %.1f MB capital of bets\n", size,
            evidence))

heading("Segments of 5,000 bins in 100 directions, up to 15")
bins <- matrix(rnorm(5e5), 100)
segments <- best(.Call(getFromNamespace("C_r_segments", "kernmean"), bins,
                       integer(), 2L, 15L), 2)
row("costs and dynamic program", segments)
bar("in s", segments, 0.4, at_least = FALSE)
by_base <- best(crossprod(bins), 2)
row("crossprod()", by_base)
bar("the same / crossprod()", segments / by_base, 1, at_least = FALSE)
