library(testthat)
library(kernmean)

test_check("kernmean")
