#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "model/cluster/calibration.hpp"

namespace lockstep {

/// A file is no calibration, or holds what cannot have been measured.
class CalibrationError : public std::runtime_error {
 public:
  CalibrationError(const std::string& message, std::string remedy)
      : std::runtime_error(message), remedy_(std::move(remedy)) {}
  const std::string& remedy() const { return remedy_; }

 private:
  std::string remedy_;
};

inline constexpr size_t calibration_bytes_max = size_t{16} << 20;

/// JSON with times in seconds. What is read from it writes the same text again.
std::string text_of(const Calibration& calibration);

/// Trusts nothing: every key is known and there, every number finite, at least 0 and in the range
/// of its unit, percentiles and sizes rise. Throws CalibrationError with the place, as
/// "/kernels/3/points/0/low_s".
Calibration calibration_of(std::string_view text);

/// Reads a calibration from a file. Throws CalibrationError.
Calibration read_calibration(const std::string& path);

}  // namespace lockstep
