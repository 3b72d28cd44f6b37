#include "model/user_program/communication_data.hpp"

#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

/// Data that is only a size carries values up to here; beyond, only the size counts.
constexpr Bytes most_sized_values{int64_t{1} << 20};

}  // namespace

CommunicationData::CommunicationData(const StatementParts& parts)
    : log_(parts.context.log),
      tensors_(parts.tensors),
      names_(parts.names),
      locations_(parts.locations),
      expressions_(parts.expressions) {}

Task<NamedTensor> CommunicationData::of(const Statement& statement, Frame& frame) {
  NamedTensor data;
  const CommunicationSpec& communication = statement.communication;
  if (!communication.tensor) {
    data.tensor = co_await sized(statement, frame);
    co_return data;
  }
  const SiteId site = site_of(statement);
  const Expression& expression = communication.tensor->value;
  if (expression.root().kind == ExpressionNode::Kind::name) {
    data.name = expression.root().name;
    if (Variable* variable = names_.find(data.name, frame)) {
      data.gradient = variable->gradient;
      if (const auto* tensor = std::get_if<TensorPointer>(&variable->content)) {
        data.tensor = *tensor;
        co_return data;
      }
    } else {
      data.name.clear();  // a name of the rank or the trainer: its value is data, not storage
    }
  }
  const Variable variable = co_await expressions_.variable_of(expression, frame, site);
  if (const auto* tensor = std::get_if<TensorPointer>(&variable.content)) {
    data.tensor = *tensor;
    data.gradient = variable.gradient;
    co_return data;
  }
  const Value value = co_await expressions_.read(variable, expression.text(), site);
  try {
    data.tensor = expressions_.tensor_from(value, locations_.of_result(expression, frame));
  } catch (const OperationError& error) {
    fail_at(log_, site, error.what(), error.remedy());
  }
  if (!data.name.empty()) {
    names_.bind(data.name, Variable{data.tensor, data.gradient}, frame);
  }
  co_return data;
}

Task<NamedTensor> CommunicationData::of_part(const Variable& part, SiteId site) {
  NamedTensor data;
  data.gradient = part.gradient;
  if (const TensorPointer* tensor = std::get_if<TensorPointer>(&part.content)) {
    data.tensor = *tensor;
    co_return data;
  }
  const Value value = co_await expressions_.read(part, "the list", site);
  try {
    data.tensor = expressions_.tensor_from(value);
  } catch (const OperationError& error) {
    fail_at(log_, site, error.what(), error.remedy());
  }
  co_return data;
}

Task<TensorPointer> CommunicationData::sized(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const CommunicationSpec& communication = statement.communication;
  const int64_t elements =
      co_await expressions_.integer_of(communication.elements->value, frame, site, "`elements`");
  if (elements < 0) {
    fail_at(log_, site, "`elements` is negative", "");
  }
  const DType dtype = value_or(communication.dtype, DType::fp32);
  if (elements > most_sized_values.count() / size_of(dtype)) {
    co_return tensors_.make_sized(dtype, {elements});
  }
  // Its content does not matter, so the statement keeps one until somebody else names it.
  TensorPointer& kept = sized_[&statement];
  if (!kept || kept.use_count() > 1 || kept->slice.elements != elements) {
    kept = tensors_.make(dtype, {elements});
  }
  co_return kept;
}

}  // namespace lockstep
