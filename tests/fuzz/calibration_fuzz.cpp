#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/calibration/calibration_file.hpp"

/// Any bytes as a calibration: reading ends with one that is written and read again alike, or with
/// a CalibrationError.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  try {
    const Calibration calibration =
        calibration_of(std::string_view(reinterpret_cast<const char*>(data), size));
    const std::string text = text_of(calibration);
    if (text_of(calibration_of(text)) != text) {
      __builtin_trap();
    }
  } catch (const CalibrationError&) {
  }
  return 0;
}
