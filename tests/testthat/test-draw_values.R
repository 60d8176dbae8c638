local({
  fit <- kme(scale(faithful[1:40, ]), estimator = "skmse")
  gram <- gram(faithful$waiting[1:30])
  test <- mmd_test(eruptions ~ waiting > 70, faithful, B = 19)
  quiet <- function(code) {
    grDevices::pdf(NULL)
    on.exit(grDevices::dev.off())
    force(code)
  }

  test_that("each graphical parameter that is known has its values", {
    known <- c(frame_settings, frame_words, layer_words, histogram_words)
    expect_setequal(names(graphics_values), known)
  })

  test_that("values that base graphics has no use for are refused by name", {
    expect_snapshot(quiet(cat(refusals(alist(
      plot(fit, col = "no color"), plot(fit, cex = -1), plot(fit, cex = "a"),
      plot(fit, pch = list()), plot(fit, pch = 27), plot(fit, lty = "wavy"),
      plot(fit, las = 7), plot(fit, xlim = c(0, Inf)), plot(fit, ylim = 1),
      plot(fit, log = "z"), plot(fit, mgp = 1), plot(fit, bty = "q"),
      plot(fit, asp = "a"), plot(fit, main = sum), plot(fit, axes = NA),
      plot(fit, main = list("a", cex = 2)),
      plot(fit, xaxt = 1), plot(gram, col = 1i),
      plot(gram, lwd = NULL, adj = 2), plot(test, breaks = "nonsense")
    )), sep = "\n")))
  })

  test_that("NULL is the same as nothing, and what is drawn is the same", {
    expect_equal(quiet(plot(fit, col = NULL, cex = NULL)), quiet(plot(fit)))
    expect_no_error(quiet(plot(fit, main = NULL)))
    pca <- kme_pca(scale(iris[, 1:4]), ncomp = 2)
    more <- list(
      col = iris$Species, col = 0, col = "0", col = c("1", "red", NA), cex = NA,
      lwd = NA, lty = NA, main = NA, ylab = NA, pch = c(1, NA), pch = 65,
      pch = ".", las = 1L, main = c("a", "b"), xlim = c(3, -3), family = "",
      tck = NA, tcl = NA, asp = 0, axes = 0, col.main = 2, font.lab = 3
    )
    for (i in seq_along(more)) {
      expect_silent(quiet(do.call(plot, c(list(pca), more[i]))))
    }
    for (rule in c("Scott", "fd")) {
      expect_silent(quiet(plot(test, breaks = rule)))
    }
    expect_silent(quiet(plot(test, density = NA)))
    expect_no_error(quiet(plot(fit, col = c("red", NA, "#12345678"), pch = "x",
                               lty = "44", main = quote(x^2), font = 2)))
  })

  test_that("what the device refuses is our error, and par() is as it was", {
    quiet({
      before <- graphics::par(c("mar", "las", "mgp", "cex"))
      expect_error(plot(fit, xlim = c(-8e307, 8e307)),
                   class = "kernmean_error_graphics")
      expect_error(plot(fit, xaxp = c(0, 1, 0)),
                   class = "kernmean_error_graphics")
      expect_equal(graphics::par(c("mar", "las", "mgp", "cex")), before)
    })
    ours <- tryCatch(with_graphics(stop("not the device")), error = identity)
    expect_false(inherits(ours, "kernmean_error"))
  })
})
