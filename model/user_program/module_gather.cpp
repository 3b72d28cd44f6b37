#include "model/user_program/module_gather.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/user_program/sites.hpp"

namespace lockstep {

ModuleGather::ModuleGather(const StatementParts& parts, CommunicationData& data)
    : rank_(parts.context.rank),
      settings_(parts.context.settings),
      trainer_(parts.context.trainer),
      tensors_(parts.tensors),
      streams_(parts.streams),
      names_(parts.names),
      checks_(parts.checks),
      locations_(parts.locations),
      tape_(parts.tape),
      expressions_(parts.expressions),
      data_(data) {}

// Everything else is a call of torch.distributed, and raises.
Program ModuleGather::communicate(const Statement& statement, Frame& frame) {
  if (statement.kind != StatementKind::all_gather) {
    check_process_group(site_of(statement));
  }
  if (settings_.gathers_rows && rank_.world_size() > 1) {
    co_await gather_rows(statement, frame);
  } else {
    co_await gather_alone(statement, frame);
  }
}

// torch/distributed/distributed_c10d.py. Until 2.0 it was a RuntimeError.
void ModuleGather::check_process_group(SiteId site) const {
  if (!lacks_process_group()) {
    return;
  }
  throw ProgramException(
      site, fmt::format("{}: Default process group has not been initialized, please make sure to "
                        "call init_process_group (this strategy does not; of Lightning's calls use "
                        "all_gather)",
                        settings_.torch >= Version{2, 1, 0} ? "ValueError" : "RuntimeError"));
}

// The data as they are, numbers as tensors. hvd.allgather gives at least one dimension.
Program ModuleGather::gather_alone(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const Given<Expression>& data = statement.communication.tensor;
  Variable variable;
  if (data) {
    variable = co_await expressions_.variable_of(data->value, frame, site);
  } else {
    variable.content = co_await data_.sized(statement, frame);
  }
  const auto* tensor = std::get_if<TensorPointer>(&variable.content);
  const Value* number = std::get_if<Value>(&variable.content);
  const bool is_scalar = tensor != nullptr && (*tensor)->shape.empty();
  if (settings_.gathers_rows && (is_scalar || (number != nullptr && number->is_number()))) {
    const Value value = co_await expressions_.read(variable, data->value.text(), site);
    Tensor whole = tensor_of(value);
    whole.shape = {1};
    variable.content = expressions_.tensor_from(Value(std::move(whole)));
  } else if (number != nullptr && number->is_number()) {
    variable.content = expressions_.tensor_from(*number);
  }
  const bool is_name = data && data->value.root().kind == ExpressionNode::Kind::name;
  if (statement.result || is_name) {
    names_.bind(statement.result ? statement.result->value : data->value.root().name,
                std::move(variable), frame);
  }
}

// HorovodStrategy.all_gather of 1.x: hvd.join and hvd.allgather, for each tensor of a collection.
Program ModuleGather::gather_rows(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  if (statement.group) {
    throw ProgramException(site,
                           "ValueError: Horovod does not support allgather using a "
                           "subcommunicator at this time. Unset `group`.");
  }
  const Given<Expression>& data = statement.communication.tensor;
  const bool is_name = data && data->value.root().kind == ExpressionNode::Kind::name;
  std::optional<Variable> gathered;
  if (is_name || (data && data->value.root().kind == ExpressionNode::Kind::list)) {
    const Variable variable = co_await expressions_.variable_of(data->value, frame, site);
    if (const auto* parts = std::get_if<Variable::List>(&variable.content)) {
      Variable::List results;
      for (const Variable& part : *parts) {
        const NamedTensor tensor = co_await data_.of_part(part, site);
        Variable rows = co_await joined_rows(tensor, site);
        results.push_back(std::move(rows));
      }
      gathered = Variable{std::move(results)};
    }
  }
  if (!gathered) {
    const NamedTensor tensor = co_await data_.of(statement, frame);
    gathered = co_await joined_rows(tensor, site);
  }
  if (statement.result || is_name) {
    names_.bind(statement.result ? statement.result->value : data->value.root().name,
                std::move(*gathered), frame);
  }
}

Task<Variable> ModuleGather::joined_rows(const NamedTensor& data, SiteId site) {
  locations_.check_call(*data.tensor, site);
  checks_.use(*data.tensor, data.name, site, false);
  checks_.defined(*data.tensor, data.name, site);
  std::vector<int64_t> shape = data.tensor->shape;
  if (shape.empty()) {
    shape.push_back(1);
  }
  streams_.hand_over_compute();
  const Slice whole = co_await trainer_->gather_rows(data.tensor->slice, shape, site);
  shape.front() = whole.elements / std::max<int64_t>(row_size(shape), 1);
  Variable rows{tensors_.adopt(whole, std::move(shape))};
  if (data.gradient) {  // hvd.allgather has a backward, whatever sync_grads says
    const std::shared_ptr<GradientNode> node = tape_.new_node(GradientNode::Kind::joined, site);
    node->elements = whole.elements;
    tape_.add_input(*node, "", data.gradient);
    rows.gradient = node;
  }
  co_return rows;
}

}  // namespace lockstep
