#include "report/diff/noise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

namespace lamina {
namespace {

// The 97.5 % quantile of Student's t by degrees of freedom, from 1.
constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                                 2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormalQuantile = 1.960;

double quantile(double freedom) {
  auto row = static_cast<size_t>(std::max(freedom, 1.0));  // rounded down: rather too wide
  if (row <= std::size(kQuantiles)) return kQuantiles[row - 1];
  constexpr double z = kNormalQuantile;
  return z + (z * z * z + z) / (4 * freedom);  // Abramowitz and Stegun, 26.7.5
}

// Of the mean: s^2 / n.
double variance_of_mean(const std::vector<double>& values) {
  auto count = static_cast<double>(values.size());
  double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return squares / (count - 1) / count;
}

double paired_noise(const std::vector<double>& before, const std::vector<double>& after) {
  std::vector<double> differences;
  std::ranges::transform(after, before, std::back_inserter(differences), std::minus());
  return quantile(static_cast<double>(differences.size() - 1)) * std::sqrt(variance_of_mean(differences));
}

StepTimes& add(StepTimes& into, const StepTimes& other, double sign) {
  into.mean_us += sign * other.mean_us;
  for (size_t i = 0; i < into.us.size() && i < other.us.size(); ++i) into.us[i] += sign * other.us[i];
  return into;
}

}  // namespace

StepTimes& operator+=(StepTimes& into, const StepTimes& other) { return add(into, other, 1); }
StepTimes& operator-=(StepTimes& from, const StepTimes& other) { return add(from, other, -1); }

std::optional<double> noise_us(const StepTimes& before, const StepTimes& after, StepPairs pairs) {
  if (before.us.size() < 2 || after.us.size() < 2) return std::nullopt;
  if (pairs == StepPairs::kSameSteps) return paired_noise(before.us, after.us);
  double a = variance_of_mean(before.us);
  double b = variance_of_mean(after.us);
  if (a + b <= 0) return 0;
  auto freedom_of = [](const StepTimes& times) { return static_cast<double>(times.us.size() - 1); };
  double freedom = (a + b) * (a + b) / (a * a / freedom_of(before) + b * b / freedom_of(after));
  return quantile(freedom) * std::sqrt(a + b);
}

}  // namespace lamina
