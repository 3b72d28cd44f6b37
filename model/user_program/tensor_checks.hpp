#pragma once

#include <string>

#include "model/trainer/logging/run_log.hpp"
#include "model/user_program/device_tensor.hpp"

namespace lockstep {

/// Looks at a tensor where a statement uses it: whether what it needs has been waited for, and
/// whether its content is defined. Each finding is made once.
class TensorChecks {
 public:
  /// Both outlive the checks.
  TensorChecks(RankLog& log, const TensorStore& tensors) : log_(log), tensors_(tensors) {}

  /// LS201 where async work that the statement meets has not been waited for. `name` may be empty.
  void use(const DeviceTensor& tensor, const std::string& name, SiteId site, bool writes);
  /// LS313 where a reduce of Gloo has left sums of some ranks.
  void defined(DeviceTensor& tensor, const std::string& name, SiteId site);
  /// Both, for a statement that reads.
  void read(DeviceTensor& tensor, const std::string& name, SiteId site);
  /// LS201 where a non_blocking copy to the host has not been waited for.
  void arrival(DeviceTensor& tensor, const std::string& name, SiteId site);

 private:
  RankLog& log_;
  const TensorStore& tensors_;
};

}  // namespace lockstep
