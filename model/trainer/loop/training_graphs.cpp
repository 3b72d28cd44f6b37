// The graphs of forwards that a later backward goes through.
#include <algorithm>
#include <ranges>

#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

// dp throws its replicas away after each backward.
bool Training::keeps_graphs() const { return !strategy_->steps_on_copies(); }

ForwardResults Training::results_of_forwards() const {
  ForwardResults found{graph_is_gone_ ? nullptr : loss_gradient_,
                       graph_is_gone_ ? nullptr : output_gradient_,
                       {},
                       !keeps_graphs()};
  for (const KeptForward& kept : kept_forwards_) {
    found.kept.insert(kept.number);
  }
  return found;
}

// As in Python, a graph lives as long as a name leads to it. The names that the next forward binds
// again do not count.
void Training::keep_last_forward(const Statement* statement, Frame& frame) {
  drop_unreachable_forwards();
  if (!training_ || !forward_done_ || graph_is_gone_ || !keeps_graphs()) {
    return;
  }
  const auto is_held = [&](const GradientPointer& result, std::string_view name, bool rebound) {
    const Variable* const variable = interpreter_.names().find(name, frame);
    const bool is_there = variable != nullptr && variable->gradient == result;
    return result && result.use_count() > 1 + (is_there && rebound ? 1 : 0);
  };
  const std::string next =
      statement != nullptr && statement->result ? statement->result->value : "output";
  const bool rebinds_output = next == output_name_;
  if (is_held(loss_gradient_, "loss", true) ||
      is_held(output_gradient_, output_name_, rebinds_output)) {
    kept_forwards_.push_back({forward_number_, loss_gradient_, output_gradient_});
    strategy_->replica().keep_forward();
  }
}

void Training::drop_unreachable_forwards() {
  std::erase_if(kept_forwards_, [&](const KeptForward& kept) {
    const bool is_unreachable = kept.loss.expired() && kept.output.expired();
    if (is_unreachable) {
      strategy_->replica().drop_forward(rank_, kept.number);
    }
    return is_unreachable;
  });
}

void Training::drop_forwards() {
  for (const KeptForward& kept : kept_forwards_) {
    strategy_->replica().drop_forward(rank_, kept.number);
  }
  kept_forwards_.clear();
}

// Autograd goes back through what ran last first.
std::vector<BackwardPass> Training::passes_of(const BackwardStart& start) const {
  const auto pass = [](int64_t number, const ForwardStart& of) {
    return BackwardPass{number, of.of_loss, of.of_output, !of.of_output.empty()};
  };
  std::vector<BackwardPass> passes;
  if (start.has_last) {
    passes.push_back(pass(forward_number_, start));
  }
  for (const auto& [number, of] : start.earlier | std::views::reverse) {
    passes.push_back(pass(number, of));
  }
  return passes;
}

}  // namespace lockstep
