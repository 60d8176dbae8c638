# Words and numbers of print().

test_that("lines are filled with whole words, the same in every locale", {
  words <- c("two words", "a (9)", "b", "c (10)")
  old <- options(width = 17)
  on.exit(options(old))
  expect_identical(fill_lines(words), c("two words a (9) b", "c (10)"))
  options(width = 16)
  expect_identical(fill_lines(words), c("two words a (9)", "b c (10)"))
})
