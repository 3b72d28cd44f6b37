#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/core/values.hpp"
#include "model/network/execute.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"

namespace lockstep::test {

inline constexpr int64_t recorded_rows = 3;
inline constexpr int64_t recorded_columns = 4;

/// The settings that tests/oracle/optimizers.py has recorded.
inline std::vector<nlohmann::json> recorded_optimizers() {
  std::vector<nlohmann::json> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/oracle/optimizers")) {
    std::ifstream file(entry.path());
    nlohmann::json recording = nlohmann::json::parse(file);
    for (nlohmann::json& setting : recording["settings"]) {
      all.push_back(std::move(setting));
    }
  }
  std::ranges::sort(all, {}, [](const nlohmann::json& each) {
    return each["optimizer"].dump() + each["dtype"].dump();
  });
  return all;
}

/// The gradients of the script, of the weight or the bias.
inline Values recorded_gradient(DType dtype, bool is_weight, int64_t step) {
  Values gradient(dtype, is_weight ? recorded_rows * recorded_columns : recorded_rows);
  for (int64_t i = 0; i < gradient.size(); ++i) {
    const int64_t row = i / recorded_columns;
    const int64_t column = i % recorded_columns;
    const int64_t number =
        is_weight ? (row * 5 + column * 3 + step * 7) % 11 - 5 : (i * 4 + step * 3) % 7 - 3;
    gradient.set(i, static_cast<double>(number) / 4);
  }
  return gradient;
}

inline Values recorded_start(DType dtype, bool is_weight) {
  Values start(dtype, is_weight ? recorded_rows * recorded_columns : recorded_rows);
  for (int64_t i = 0; i < start.size(); ++i) {
    start.set(i, is_weight ? static_cast<double>(i) / 8 - 0.5 : static_cast<double>(i) / 4 - 0.25);
  }
  return start;
}

/// Buffers by number: 0 is the gradient, 1 the parameter, then the state.
class UpdateOperands final : public Operands {
 public:
  explicit UpdateOperands(std::vector<Values> buffers) : buffers_(std::move(buffers)) {}
  Values load(const Slice& from) override { return buffers_[from.buffer.value]; }
  void store(const Slice& to, const Values& values) override {
    for (int64_t i = 0; i < values.size(); ++i) {
      buffers_[to.buffer.value].set(i, values.number(i));
    }
  }
  Values& at(size_t buffer) { return buffers_[buffer]; }

 private:
  std::vector<Values> buffers_;
};

/// The parameter after each step, computed by `execute`.
inline std::vector<Values> updated_by(const OptimizerSettings& settings, DType dtype,
                                      bool is_weight, int64_t steps,
                                      const std::function<void(const Op&, Operands&)>& execute) {
  const OptimizerRule& rule = rule_of(settings.kind);
  const Shape shape = is_weight ? Shape{recorded_rows, recorded_columns} : Shape{recorded_rows};
  std::vector<Values> buffers = {Values(dtype, elements_of(shape)),
                                 recorded_start(dtype, is_weight)};
  for (const OptimizerState& state : rule.state(settings, shape)) {
    Values& made = buffers.emplace_back(dtype, state.elements);
    for (int64_t i = 0; i < state.elements; ++i) {
      made.set(i, state.initial);
    }
  }
  std::vector<Slice> places;
  for (uint32_t buffer = 0; buffer < buffers.size(); ++buffer) {
    places.push_back({BufferId{buffer}, dtype, 0, buffers[buffer].size()});
  }
  UpdateOperands operands(std::move(buffers));
  const std::vector<Slice> reads = {places.front()};
  const std::vector<Slice> writes(places.begin() + 1, places.end());
  std::array<double, 2> kept{};
  std::vector<Values> after;
  for (int64_t step = 1; step <= steps; ++step) {
    operands.at(0) = recorded_gradient(dtype, is_weight, step);
    const UpdateMoment moment{step, rule.advance(settings, step, kept)};
    const std::vector<double> scalars = rule.scalars(settings, moment, shape);
    const OpLists lists{{}, reads, writes, {}, scalars};
    Op op;
    op.kind = OpKind::compute;
    op.kernel = rule.kernel();
    op.lists = &lists;
    execute(op, operands);
    after.push_back(operands.at(1));
  }
  return after;
}

}  // namespace lockstep::test
