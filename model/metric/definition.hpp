#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/metric/metric.hpp"
#include "model/scenario/object.hpp"

namespace lockstep {

/// A metric of the scenario as its class name and arguments say (TorchMetrics 1.9), the same for
/// all ranks. A MetricCollection has members and no formulas of its own.
struct MetricDefinition {
  std::string name;        ///< "val_f1"; of a member its own name, without prefix and postfix
  std::string class_name;  ///< "BinaryF1Score"
  std::shared_ptr<const Metric> metric;
  bool dist_sync_on_step = false;
  bool sync_on_compute = true;
  bool compute_with_cache = true;
  bool compute_on_cpu = false;  ///< entries of lists are kept in the host's memory
  std::vector<MetricDefinition> members;
  std::string prefix;
  std::string postfix;
  bool compute_groups = true;
  SourcePlace place{};

  bool is_collection() const { return metric == nullptr; }
  /// Returns the key under which a collection gives the value of a member.
  std::string key_of(const MetricDefinition& member) const {
    return prefix + member.name + postfix;
  }
};

/// Why an object is no metric: an argument is wrong, or not modelled.
class MetricError : public std::runtime_error {
 public:
  MetricError(SourcePlace place, const std::string& message, std::string remedy, bool unsupported)
      : std::runtime_error(message),
        place_(std::move(place)),
        remedy_(std::move(remedy)),
        unsupported_(unsupported) {}
  const SourcePlace& place() const { return place_; }
  const std::string& remedy() const { return remedy_; }
  bool unsupported() const { return unsupported_; }

 private:
  SourcePlace place_;
  std::string remedy_;
  bool unsupported_;
};

/// The catalogue: from a TorchMetrics class with its arguments to what it computes. Throws
/// MetricError.
MetricDefinition define_metric(const std::string& name, const Object& object);
/// "val_f1" of `val_f1` and `self.val_f1`.
std::string metric_name_of(const std::string& written);
/// Every class that `define_metric` knows.
std::vector<std::string> metric_class_names();

}  // namespace lockstep
