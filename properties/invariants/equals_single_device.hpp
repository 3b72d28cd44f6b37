#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/core/update_sensitivity.hpp"
#include "model/core/values.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// A result of a run: a parameter, or a logged metric.
struct NamedValues {
  std::string name;
  int32_t rank = 0;
  Values values;
  /// Of a rank that holds a part of it: where the part begins. Then `values` are compared with
  /// those elements of the whole.
  std::optional<int64_t> first_element{};
  /// Set for a recorded parameter; null if the optimizer does not divide by gradients.
  const UpdateSensitivity* sensitivity = nullptr;
  int64_t sensitivity_begin = 0;  ///< its element of the first of `values`
};

/// How near is equal.
struct EqualityRule {
  /// Rounded operations behind each element, in either run; 0 = bit for bit, right for
  /// integer-valued data whose sums stay exact (below 2^24 in fp32) and for metric states.
  int64_t operations = 0;
  /// With mixed precision: how often each step's gradients are rounded to the narrow type.
  int64_t narrow_operations = 0;
  int64_t steps = 0;
  DType narrow_dtype = DType::bf16;
  /// Ranks had different numbers of samples, so that equal weights are wrong.
  bool uneven_samples = false;
  /// Batch norm takes its statistics from a device's part of the batch, so that a difference is
  /// expected and depends on how large the parts are: a warning.
  bool splits_statistics = false;
  /// `sync_batchnorm` would share them.
  bool may_share_statistics = true;
  /// Into which a pipeline cuts a device's part; each has statistics of its own.
  int64_t micro_batches = 1;
  /// Of which part of the batch the loss compares the samples with each other, where one device
  /// compares those of the whole batch: a difference is expected, too.
  enum class Compares : uint8_t { all, of_rank, of_device, of_device_of_node, of_node };
  Compares compares = Compares::all;
  /// By name: how far rounding has carried values as a run shows that rounds otherwise, where it is
  /// further than the number of operations explains.
  std::map<std::string, double, std::less<>> carried{};
};

/// The largest difference that rounding explains: 2 gamma_n * magnitude
/// (properties/logged/rounding.hpp), and under mixed precision 2 gamma_m of the narrow type *
/// magnitude a step beside; magnitude: the largest absolute element of both.
double rounding_bound(const EqualityRule& rule, DType dtype, double magnitude);
/// The bound for one element, including the optimizer's response to such an error of gradients.
double rounding_bound(const EqualityRule& rule, DType dtype, double magnitude,
                      const UpdateSensitivity* sensitivity, int64_t element);

/// Checks that a distributed run computes what one device does from the same samples (LS306).
/// Names that the single-device run does not have are not judged, nor, where rounding counts, are
/// elements that are finite in neither run. One finding: the first name.
std::vector<Finding> equals_single_device(std::span<const NamedValues> run,
                                          std::span<const NamedValues> single_device,
                                          const EqualityRule& rule);

}  // namespace lockstep
