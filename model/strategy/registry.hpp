#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/core/site.hpp"
#include "model/strategy/arguments.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// Makes the strategy object of one rank. Throws std::invalid_argument for arguments it cannot
/// take.
using StrategyFactory = std::function<std::unique_ptr<Strategy>(
    const TrainingPlan& plan, const StrategyArguments& arguments)>;

/// Which process drives which devices.
enum class ProcessLayout : uint8_t {
  one_device_each,      ///< a process for each device (ddp)
  one_for_one_device,   ///< one process and one device (single)
  one_for_all_devices,  ///< one process drives all devices of its node (dp)
};

struct StrategyEntry {
  std::string name;        ///< "ddp"
  std::string class_name;  ///< "DDPStrategy"
  ProcessLayout layout = ProcessLayout::one_device_each;
  std::vector<std::string> arguments;  ///< that the factory understands
  std::vector<Site> sites;             ///< what its operations are called in findings
  StrategyFactory make;

  bool is_one_process() const { return layout != ProcessLayout::one_device_each; }
};

/// The strategies that a program knows. A strategy outside this tree is added with one line.
class StrategyRegistry {
 public:
  void add(StrategyEntry entry) { entries_.push_back(std::move(entry)); }
  /// By name or class name; null when unknown.
  const StrategyEntry* find(const std::string& name) const;
  const std::vector<StrategyEntry>& entries() const { return entries_; }

 private:
  std::vector<StrategyEntry> entries_;
};

/// single, dp, ddp, and ddp by the other names that it has for the ways to start processes.
StrategyRegistry standard_strategies();

}  // namespace lockstep
