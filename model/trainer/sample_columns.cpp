#include "model/trainer/sample_columns.hpp"

#include <fmt/core.h>

#include "model/scenario/tensor.hpp"
#include "model/trainer/sites.hpp"

namespace lockstep {

namespace {

class SampleScope final : public Environment {
 public:
  SampleScope(int64_t sample, uint64_t seed) : sample_(sample), seed_(seed) {}
  std::optional<Value> lookup(std::string_view name) override {
    return name == "sample" ? std::optional<Value>(sample_) : std::nullopt;
  }
  double random(const SourcePlace& place) override {
    const uint64_t of_place = random_key(seed_, site_of(place).value);
    return random_unit(random_key(of_place, static_cast<uint64_t>(sample_)), turn_++);
  }
  bool unknown(const SourcePlace&) override { return false; }

 private:
  int64_t sample_;
  uint64_t seed_;
  uint64_t turn_ = 0;
};

}  // namespace

SampleColumns::SampleColumns(const std::optional<ColumnValues>& values, uint64_t seed, bool written)
    : seed_(seed), written_(written) {
  if (!values) {
    return;
  }
  for (const Column& column : values->columns) {
    Entry entry;
    entry.name = column.name;
    entry.expression = column.expression;
    const ExpressionNode& root = column.expression.root();
    if (root.kind == ExpressionNode::Kind::list) {
      for (const ExpressionNodePointer& part : root.parts) {
        entry.items.emplace_back(part, column.expression.text());
      }
    } else if (root.kind == ExpressionNode::Kind::constant && root.value.is(Value::Kind::list)) {
      for (const Value& item : root.value.list()) {
        entry.items.push_back(Expression::constant(item, root.place));
      }
    }
    entries_.push_back(std::move(entry));
  }
}

const SampleColumns::Entry* SampleColumns::find(std::string_view column) const {
  for (const Entry& entry : entries_) {
    if (entry.name == column) {
      return &entry;
    }
  }
  return nullptr;
}

Value SampleColumns::one(const Entry& entry, int64_t sample) const {
  SampleScope scope(sample, seed_);
  if (entry.items.empty()) {
    return evaluate(entry.expression, scope);
  }
  if (sample >= static_cast<int64_t>(entry.items.size())) {
    throw OperationError(fmt::format("the column `{}` has {} entries, none for sample {}",
                                     entry.name, entry.items.size(), sample),
                         "give one entry a sample");
  }
  return evaluate(entry.items[static_cast<size_t>(sample)], scope);
}

Value SampleColumns::values(std::string_view column, const std::vector<int64_t>& samples) const {
  const Entry* entry = find(column);
  ensure(entry != nullptr, "the column is there");
  List items;
  items.reserve(samples.size());
  for (const int64_t sample : samples) {
    items.push_back(one(*entry, sample));
  }
  return Value(tensor_of(Value(std::move(items))));
}

}  // namespace lockstep
