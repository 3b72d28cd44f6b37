#include "model/metric/running.hpp"

#include <fmt/format.h>

namespace lockstep {

namespace {

// Behind the copies of all states stands the number of updates.
std::vector<MetricStateSpec> window_states(const Metric& base, int64_t window) {
  std::vector<MetricStateSpec> states;
  for (const MetricStateSpec& state : base.states()) {
    for (int64_t i = 0; i < window; ++i) {
      states.push_back(state);
      states.back().name = fmt::format("{}_{}", state.name, i);
    }
  }
  states.push_back({"updates", StateReduction::sum, false, scalar(0, DType::int64)});
  return states;
}

class Running final : public Metric {
 public:
  Running(std::unique_ptr<const Metric> base, int64_t window)
      : Metric(window_states(*base, window)), base_(std::move(base)), window_(window) {}

  MetricInputKind input_kind() const override { return base_->input_kind(); }
  bool full_state_update() const override { return true; }
  bool is_wrapper() const override { return true; }

  void update(const MetricInputs& inputs, MetricState& state) const override {
    MetricState batch = base_->initial_state();
    base_->update(inputs, batch);
    Values& updates = state.back().front().values;
    const int64_t slot = updates.integer(0) % window_;
    for (size_t i = 0; i < batch.size(); ++i) {
      state[i * static_cast<size_t>(window_) + static_cast<size_t>(slot)] = std::move(batch[i]);
    }
    updates.set_integer(0, updates.integer(0) + 1);
  }

  const std::vector<MetricStateSpec>& exchanged_states() const override { return base_->states(); }

  MetricState exchanged(MetricState own) const override {
    MetricState sums = base_->initial_state();
    for (size_t i = 0; i < sums.size(); ++i) {
      for (int64_t slot = 0; slot < window_; ++slot) {
        const size_t at = i * static_cast<size_t>(window_) + static_cast<size_t>(slot);
        add_to(sums[i].front(), own[at].front());
      }
    }
    return sums;
  }

  Tensor compute(const MetricState& state) const override { return base_->compute(state); }

 private:
  std::unique_ptr<const Metric> base_;
  int64_t window_;
};

}  // namespace

std::unique_ptr<const Metric> make_running(std::unique_ptr<const Metric> base, int64_t window) {
  return std::make_unique<Running>(std::move(base), window);
}

}  // namespace lockstep
