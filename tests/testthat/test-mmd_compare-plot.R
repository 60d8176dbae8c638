# Plots of comparisons, and their tables for broom.

set.seed(1)
chicks <- subset(chickwts, feed != "linseed")
chicks$feed <- sub("meal", " meal", chicks$feed)
all <- mmd_test(weight ~ feed, chicks, pairwise = TRUE, B = 199)
one <- update(all, control = "casein")

silent_plot <- function(...) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  plot(...)
}

test_that("plots return what they show", {
  expect_identical(silent_plot(all), as.matrix(all))
  tree <- silent_plot(all, "dendrogram")
  expect_equal(tree$height, hclust(as.dist(all), "average")$height)
  bars <- silent_plot(one)
  expect_false(is.unsorted(-bars$distance))
  expect_setequal(bars$group1, setdiff(chicks$feed, "casein"))
})

test_that("the lines of a tree have the heights of cophenetic()", {
  for (seed in 1:5) {
    points <- random_points(9, 2, seed)
    tree <- hclust(dist(points), "average")
    lines <- tree_lines(tree)
    forks <- matrix(lines$x, 5)
    heights <- matrix(lines$y, 5)
    expect_identical(heights[2, ], tree$height)
    # Leaves stand at their place in the order.
    leaves <- lines$x[which(lines$y == 0)]
    expect_setequal(leaves, 1:9)
    # The fork that joins two leaves first is the lowest over both.
    over <- vapply(seq_len(8), \(f) {
      below <- function(branch) {
        if (branch < 0) -branch else unlist(lapply(tree$merge[branch, ], below))
      }
      range(match(below(f), tree$order))
    }, numeric(2))
    expect_true(all(forks[1, ] >= over[1, ] & forks[3, ] <= over[2, ] |
                      forks[3, ] >= over[1, ] & forks[1, ] <= over[2, ]))
  }
})

test_that("marks say what adjusted p-values are", {
  p <- c(0.0002, 0.001, 0.0049, 0.01, 0.05, 0.051, 1)
  expect_identical(p_marks(p, 5), c("<.001", ".001", ".005", ".010", ".050",
                                    ".051", "1.000"))
  expect_identical(p_marks(p, 20), c("***", "***", "**", "**", "*", "", ""))
  expect_identical(p_marks(p, 200), rep("", 7))
})

test_that("autoplot() builds the same pictures", {
  skip_if_not_installed("ggplot2")
  for (plot in list(ggplot2::autoplot(all), ggplot2::autoplot(one),
                    ggplot2::autoplot(all, "dendrogram"))) {
    expect_s3_class(plot, "ggplot")
    expect_silent(ggplot2::ggplot_build(plot))
  }
  built <- ggplot2::ggplot_build(ggplot2::autoplot(all))
  labels <- built$data[[2]]
  p <- as.matrix(all, "p.adjusted")
  expect_setequal(labels$label, p_marks(p[!is.na(p)], 5))
})
