# Words and numbers of print().

test_that("lines are filled with whole words, the same in every locale", {
  words <- c("two words", "a (9)", "b", "c (10)")
  expect_identical(fill_lines(words, 80L), "two words a (9) b c (10)")
  expect_identical(fill_lines(words, 17L, exdent = 2L),
                   c("two words a (9) b", "  c (10)"))
  expect_identical(fill_lines(words, 16L, exdent = 2L),
                   c("two words a (9)", "  b c (10)"))
  expect_identical(fill_lines(words, 1L), words)
})
