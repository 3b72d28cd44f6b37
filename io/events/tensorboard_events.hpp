#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// One record of a TFRecord file: its length and its bytes, each with a masked CRC-32C.
std::string tfrecord(std::string_view bytes);

/// The event that a file of TensorBoard begins with.
std::string version_event(double wall_time_s);
/// A scalar at a step, as an Event with a Summary of one simple_value.
std::string scalar_event(double wall_time_s, int64_t step, std::string_view tag, float value);

}  // namespace lockstep
