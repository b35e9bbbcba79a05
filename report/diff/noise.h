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

// Half the width of the 95 % confidence interval of the difference of the means: of rows whose time did not change, one in
// twenty is beyond it. Nothing when either side has a single step. With s a standard deviation, n the number of steps and t
// from Student's distribution:
// - kSameSteps, when both profiles have the steps of the same numbers: t * s / sqrt(n), s being that of the differences
//   step by step (Student, "The probable error of a mean", Biometrika 6, 1908). What grows from step to step on both sides,
//   as attention does with the KV cache, is no noise.
// - kOtherSteps: t * sqrt(sa^2 / na + sb^2 / nb), with the degrees of freedom of Welch and Satterthwaite (B. L. Welch, "The
//   generalization of 'Student's' problem when several different population variances are involved", Biometrika 34, 1947).
enum class StepPairs { kSameSteps, kOtherSteps };
std::optional<double> noise_us(const StepTimes& before, const StepTimes& after, StepPairs pairs);

}  // namespace lamina
