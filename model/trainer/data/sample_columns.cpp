#include "model/trainer/data/sample_columns.hpp"

#include <fmt/core.h>

#include <map>

#include "model/expression/tensor.hpp"
#include "model/user_program/rank_names.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

class SampleScope final : public Environment {
 public:
  SampleScope(uint64_t seed, const Place& place) : seed_(seed), place_(place) {}
  void move_to(int64_t sample) {
    sample_ = sample;
    turn_ = 0;
  }
  std::optional<Value> lookup(std::string_view name) override {
    return name == "sample" ? std::optional<Value>(sample_) : name_of_rank(name, place_);
  }
  double random(const SourcePlace& place) override {
    return random_unit(random_key(key_of(place), static_cast<uint64_t>(sample_)), turn_++);
  }
  bool unknown(const SourcePlace&) override { return false; }

 private:
  // Remembered: a site is the hash of a text. Places belong to the expression, which stays.
  uint64_t key_of(const SourcePlace& place) {
    const auto [known, fresh] = keys_.try_emplace(&place);
    if (fresh) {
      known->second = random_key(seed_, site_of(place).value);
    }
    return known->second;
  }

  int64_t sample_ = 0;
  uint64_t seed_;
  const Place& place_;
  uint64_t turn_ = 0;
  std::map<const SourcePlace*, uint64_t> keys_;
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
  table_ = values->table;
  std::vector<std::string> names;
  if (table_) {
    for (const SampleTable::Column& column : table_->columns()) {
      names.push_back(column.name);
    }
  } else {
    for (const Entry& entry : entries_) {
      names.push_back(entry.name);
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    column_names_.emplace(names[i], Parts{i});
  }
  for (const ColumnGroup& group : column_groups(names)) {
    column_names_.emplace(group.name, group.columns);
  }
}

namespace {

Value value_of(const SampleColumns::Entry& entry, int64_t sample, SampleScope& scope) {
  scope.move_to(sample);
  if (entry.items.empty()) {
    return evaluate(entry.expression, scope);
  }
  if (sample >= static_cast<int64_t>(entry.items.size())) {
    throw OperationError(fmt::format("the column `{}` has {} entries, none for sample {}",
                                     entry.name, entry.items.size(), sample),
                         "give one entry per sample");
  }
  return evaluate(entry.items[static_cast<size_t>(sample)], scope);
}

}  // namespace

Tensor SampleColumns::of_column(size_t column, const std::vector<int64_t>& samples,
                                const Place& place) const {
  if (!table_) {
    SampleScope scope(seed_, place);
    List items;
    items.reserve(samples.size());
    for (const int64_t sample : samples) {
      items.push_back(value_of(entries_[column], sample, scope));
    }
    return tensor_of(Value(std::move(items)));
  }
  const SampleTable::Column& known = table_->columns()[column];
  for (const int64_t sample : samples) {
    if (sample >= table_->rows()) {
      throw OperationError(fmt::format("the column `{}` has {} rows, none for sample {}",
                                       known.name, table_->rows(), sample),
                           "give one row per sample");
    }
  }
  std::vector<double> numbers(samples.size());
  table_->read(column, samples, numbers);
  return {{static_cast<int64_t>(samples.size())},
          Values::of(known.whole ? DType::int64 : DType::fp32, numbers)};
}

Value SampleColumns::values(std::string_view column, const std::vector<int64_t>& samples,
                            const Place& place) const {
  const auto found = column_names_.find(column);
  ensure(found != column_names_.end(), "the column exists");
  const Parts& parts = found->second;
  if (parts.size() == 1) {
    return Value(of_column(parts.front(), samples, place));
  }
  const auto width = static_cast<int64_t>(parts.size());
  Tensor side_by_side;
  side_by_side.shape = {static_cast<int64_t>(samples.size()), width};
  side_by_side.values = Values(DType::fp32, static_cast<int64_t>(samples.size()) * width);
  for (int64_t part = 0; part < width; ++part) {
    const Tensor one = of_column(parts[static_cast<size_t>(part)], samples, place);
    if (one.values.size() != static_cast<int64_t>(samples.size())) {
      throw OperationError(fmt::format("the columns of `{}` hold more than a number each", column));
    }
    for (int64_t i = 0; i < one.values.size(); ++i) {
      side_by_side.values.set(i * width + part, one.values.number(i));
    }
  }
  return Value(std::move(side_by_side));
}

}  // namespace lockstep
