#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/strategy/local_model/backward_pass.hpp"
#include "model/strategy/strategy.hpp"
#include "model/user_program/module_names.hpp"

namespace lockstep {

/// The graphs of one rank's forwards that a later backward goes through: that of the last forward,
/// and earlier ones of the batch that something still depends on. As in Python, a graph lives as
/// long as a name leads to it.
class ForwardGraphs {
 public:
  /// All outlive the graphs.
  ForwardGraphs(Rank& rank, Strategy& strategy, ModuleNames& names)
      : rank_(rank), strategy_(strategy), names_(names) {}

  /// Before the next forward, which binds its output to `next_output`: keeps the graph of the last
  /// one where a name leads to it. `has_last`: gradients are asked for, and there was one.
  void keep_last(const std::string& next_output, Frame& frame, bool has_last);
  /// A forward has run. Its results follow.
  void begin(int64_t number);
  void set_loss(GradientPointer loss) { loss_ = std::move(loss); }
  void set_output(std::string name, GradientPointer output);
  int64_t last() const { return number_; }

  /// What a gradient may end at.
  ForwardResults results() const;
  /// A backward uses up the graph of the last forward. Gives whether one has done so before.
  bool use_up_last() { return std::exchange(last_is_gone_, true); }
  bool keeps_earlier() const { return !kept_.empty(); }
  /// The passes of a backward, the last forward first; uses up the earlier ones.
  std::vector<BackwardPass> take_passes(const BackwardStart& start);
  /// The batch has ended.
  void drop_all();

 private:
  struct KeptForward {
    int64_t number = 0;
    std::weak_ptr<const GradientNode> loss{};
    std::weak_ptr<const GradientNode> output{};
  };
  bool keeps_any() const;
  void drop_unreachable();

  Rank& rank_;
  Strategy& strategy_;
  ModuleNames& names_;
  int64_t number_ = 0;                  ///< of the last forward
  GradientPointer loss_;                ///< of the last
  GradientPointer output_;              ///< of the same
  std::string output_name_ = "output";  ///< to which the last has bound its output
  bool last_is_gone_ = false;           ///< a backward has used it up
  std::vector<KeptForward> kept_;
};

}  // namespace lockstep
