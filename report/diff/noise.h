// How much of a difference of times is noise, from the spread of the times of single steps.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace lamina {

// The times of a row in one profile. Microseconds.
struct StepTimes {
  // The mean over all steps, not the median: means of rows add up to those of their parents, so that shares do. What a
  // few slow steps do to a mean shows in the noise.
  double mean_us = 0;
  std::vector<double> us;  // of each step that the report keeps

  static StepTimes zero(size_t steps) { return {0, std::vector<double>(steps)}; }
};

StepTimes& operator+=(StepTimes& into, const StepTimes& other);  // of the same steps
StepTimes& operator-=(StepTimes& from, const StepTimes& other);

// Half the width of the 95 % confidence interval of the difference of the two means: t * sqrt(sa^2 / na + sb^2 / nb), with
// s the standard deviation of the steps, n their number and t from Student's distribution with the degrees of freedom of
// Welch and Satterthwaite (B. L. Welch, "The generalization of 'Student's' problem when several different population
// variances are involved", Biometrika 34, 1947). A trend over the steps, as of a growing KV cache, counts as spread, so
// that the noise is rather said too large. One row in twenty whose time did not change is beyond it.
// Nothing when either side has a single step.
std::optional<double> noise_us(const StepTimes& before, const StepTimes& after);

}  // namespace lamina
