// How the loss of a step follows from that of its forward, and the way back (torch/autograd).
#include <algorithm>
#include <set>

#include "model/expression/tensor.hpp"
#include "model/user_program/interpreter.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

using NodeKind = GradientNode::Kind;

/// The names of one expression, as they were when it was computed.
class Snapshot final : public Environment {
 public:
  explicit Snapshot(const GradientNode& node) : node_(node) {}
  std::optional<Value> lookup(std::string_view name) override {
    const auto found = node_.values.find(name);
    return found == node_.values.end() ? std::nullopt : std::optional(found->second);
  }
  double random(const SourcePlace&) override { return 0; }
  bool unknown(const SourcePlace&) override { return false; }

 private:
  const GradientNode& node_;
};

ExpressionNodePointer name_node(const std::string& name) {
  ExpressionNode node;
  node.kind = ExpressionNode::Kind::name;
  node.name = name;
  return make_expression_node(std::move(node));
}

bool holds_gradient(const Variable& variable) {
  if (const auto* list = std::get_if<Variable::List>(&variable.content)) {
    return std::ranges::any_of(*list, holds_gradient);
  }
  return variable.gradient != nullptr;
}

// Visits everything that a gradient may pass through, the most recent first.
std::vector<GradientPointer> reachable(const GradientPointer& from) {
  std::vector<GradientPointer> nodes = {from};
  std::set<const GradientNode*> seen = {from.get()};
  for (size_t next = 0; next < nodes.size(); ++next) {
    const GradientPointer node = nodes[next];
    for (const auto& [name, input] : node->inputs) {
      if (seen.insert(input.get()).second) {
        nodes.push_back(input);
      }
    }
  }
  std::ranges::sort(nodes, std::greater<>(), &GradientNode::number);
  return nodes;
}

void add_to(Adjoint& sum, const Adjoint& more) {
  sum.resize(more.size());
  std::ranges::transform(sum, more, sum.begin(), std::plus<>());
}

}  // namespace

GradientNode::~GradientNode() {
  std::vector<GradientPointer> open;
  const auto take = [&open](GradientNode& node) {
    for (auto& [name, input] : node.inputs) {
      open.push_back(std::move(input));
    }
    node.inputs.clear();
  };
  take(*this);
  while (!open.empty()) {
    const GradientPointer last = std::move(open.back());
    open.pop_back();
    if (last.use_count() == 1) {
      take(const_cast<GradientNode&>(*last));  // nobody else sees it any more
    }
  }
}

std::shared_ptr<GradientNode> Interpreter::new_node(NodeKind kind, SiteId site) {
  auto node = std::make_shared<GradientNode>();
  node->kind = kind;
  node->number = gradient_nodes_++;
  node->graph = graph_;
  node->site = site;
  return node;
}

GradientPointer Interpreter::new_result_of_forward(int64_t elements, int64_t forward,
                                                   bool is_output) {
  const std::shared_ptr<GradientNode> node = new_node(NodeKind::forward, no_site);
  node->elements = elements;
  node->forward = forward;
  node->is_output = is_output;
  return node;
}

void Interpreter::add_input(GradientNode& node, const std::string& name, GradientPointer input) {
  if (input->graph == graph_) {
    node.reaches_earlier_graph = node.reaches_earlier_graph || input->reaches_earlier_graph;
    node.inputs.emplace(name, std::move(input));
  } else {
    node.reaches_earlier_graph = true;  // not kept: a sum over batches would keep them all
  }
}

// A list is what an expression that lists its items gives.
GradientPointer Interpreter::gradient_of_list(const Variable::List& items, const List& values) {
  const std::shared_ptr<GradientNode> node = new_node(NodeKind::expression, no_site);
  ExpressionNode list;
  list.kind = ExpressionNode::Kind::list;
  for (size_t index = 0; index < items.size(); ++index) {
    const std::string name = std::to_string(index);
    list.parts.push_back(name_node(name));
    node->values.emplace(name, values[index]);
    if (const auto* inner = std::get_if<Variable::List>(&items[index].content)) {
      if (holds_gradient(items[index])) {
        add_input(*node, name, gradient_of_list(*inner, values[index].list()));
      }
    } else if (items[index].gradient) {
      add_input(*node, name, items[index].gradient);
    }
  }
  node->expression = Expression(make_expression_node(std::move(list)), "a list");
  node->number = gradient_nodes_++;  // after the lists within it
  return node;
}

GradientPointer Interpreter::recorded(const Expression& expression, int64_t elements, Frame& frame,
                                      SiteId site, const NamedValues& resolved) {
  const auto tracked = [&](std::string_view name) {
    const Variable* variable = names_.find(name, frame);
    return variable != nullptr && holds_gradient(*variable);
  };
  const bool reads_parameters = std::ranges::count(expression.functions(), parameter_function) != 0;
  if (!reads_parameters && (std::ranges::none_of(expression.names(), tracked) ||
                            !is_differentiable_in(expression, tracked))) {
    return nullptr;
  }
  const std::shared_ptr<GradientNode> node = new_node(NodeKind::expression, site);
  node->expression = expression;
  node->elements = elements;
  node->through_parameters = reads_parameters;
  for (const std::string& name : expression.names()) {
    const auto known = resolved.find(name);
    const Value value = known != resolved.end()
                            ? known->second
                            : evaluated(Expression(name_node(name), name), frame, site, {});
    node->values.emplace(name, value);
    if (!tracked(name)) {
      continue;
    }
    const Variable& variable = *names_.find(name, frame);
    const auto* list = std::get_if<Variable::List>(&variable.content);
    add_input(*node, name,
              list == nullptr ? variable.gradient : gradient_of_list(*list, value.list()));
  }
  node->number = gradient_nodes_++;  // after its lists
  return node;
}

// The effect of PyTorch's collectives on a graph: those that write their data know nothing of it,
// and of all others only all_gather with sync_grads has a backward.
GradientPointer Interpreter::gradient_through(const Statement& statement, const Group& group,
                                              const Call& call, GradientPointer data) {
  if (call.in_place && call.op.kind != OpKind::recv) {
    return data;
  }
  const bool flows = statement.kind == StatementKind::all_gather &&
                     value_or(statement.communication.sync_grads, false);
  if (!flows || !data) {
    return nullptr;
  }
  const std::shared_ptr<GradientNode> node =
      new_node(NodeKind::gathered, backward_site_of(statement));
  node->group = group;
  node->dtype = call.data->slice.dtype;
  node->elements = call.result->slice.elements;
  add_input(*node, "", std::move(data));
  return node;
}

std::map<std::string, Adjoint> Interpreter::expression_back(const GradientNode& node,
                                                            const Adjoint& adjoint) {
  std::vector<std::string> tracked;
  for (const auto& [name, input] : node.inputs) {
    tracked.push_back(name);
  }
  Snapshot snapshot(node);
  try {
    return pull_back(node.expression, snapshot, adjoint, tracked);
  } catch (const EvaluationError& error) {
    fail_at(log_, node.site, error.message(), error.remedy());
  }
}

// What PyTorch raises on the way, and what is not modelled.
void Interpreter::check_node(const GradientNode& node, const ForwardResults& results, SiteId site) {
  if (node.reaches_earlier_graph) {
    throw ProgramException(site, "Trying to backward through the graph a second time");
  }
  if (node.through_parameters) {
    lack_at(log_, site, "the gradient of `parameter(..)` is not modelled",
            "keep it out of the loss; optimizers have weight_decay");
  }
  if (node.kind == NodeKind::joined) {
    lack_at(log_, node.site, "the gradient of hvd.allgather is not modelled",
            "use what it gives for logging, and the rank's own value in the loss");
  }
  const bool is_last = &node == results.loss.get() || &node == results.output.get();
  if (node.kind != NodeKind::forward || is_last) {
    return;
  }
  if (results.keeps_none) {
    lack_at(log_, site, "backward through an earlier forward is not modelled under dp",
            "write the backward of each loss before the next forward: their gradients add up");
  }
  if (!results.kept.contains(node.forward)) {
    throw ProgramException(site, "Trying to backward through the graph a second time");
  }
}

namespace {

/// Adds what a value gives one result of a forward.
void note_start(const GradientNode& node, const Adjoint& adjoint, ForwardStart& start) {
  if (node.is_output) {
    start.of_output = adjoint;
  } else {
    start.of_loss = adjoint.front();
  }
}

}  // namespace

Task<BackwardStart> Interpreter::gradient_of(GradientPointer variable, ForwardResults results,
                                             SiteId site) {
  if (!variable) {
    throw ProgramException(
        site, "element 0 of tensors does not require grad and does not have a grad_fn");
  }
  if (variable->elements != 1) {
    throw ProgramException(site, "grad can be implicitly created only for scalar outputs");
  }
  std::map<const GradientNode*, Adjoint> adjoints = {{variable.get(), {1}}};
  std::map<int64_t, int> results_of;  // of each forward: its loss, its output, or both
  BackwardStart start;
  start.has_last = false;
  for (const GradientPointer& node : reachable(variable)) {
    const auto found = adjoints.find(node.get());
    if (found == adjoints.end()) {
      continue;
    }
    check_node(*node, results, site);
    if (node->kind == NodeKind::forward) {
      const bool is_last = node == results.loss || node == results.output;
      start.has_last = start.has_last || is_last;
      note_start(*node, found->second,
                 is_last ? static_cast<ForwardStart&>(start) : start.earlier[node->forward]);
      if (++results_of[node->forward] > 1) {
        lack_at(log_, site,
                "a loss that is made of the network's loss and of its output is not modelled",
                "compute all of it from `output`, or from `loss`");
      }
      continue;
    }
    if (node->kind == NodeKind::gathered) {
      const Adjoint back = co_await gathered_back(*node, found->second);
      add_to(adjoints[node->inputs.begin()->second.get()], back);
      continue;
    }
    for (const auto& [name, back] : expression_back(*node, found->second)) {
      add_to(adjoints[node->inputs.find(name)->second.get()], back);
    }
  }
  if (results_of.empty()) {
    throw ProgramException(site, "backward of something that does not depend on the last forward");
  }
  co_return start;
}

// torch/distributed/nn/functional.py, _AllGather.backward: reduce_scatter with NCCL, else a scatter
// from every rank and a sum. Lightning up to 1.6 (utilities/distributed.py, AllGatherGrad) reduces
// the whole gradient and takes its own part.
Task<Adjoint> Interpreter::gathered_back(const GradientNode& node, const Adjoint& adjoint) {
  const auto ranks = static_cast<int64_t>(size_of_group(node.group));
  const auto elements = static_cast<int64_t>(adjoint.size()) / ranks;
  const TensorPointer whole = tensors_.make(node.dtype, {ranks, elements});
  Values values(node.dtype, ranks * elements);
  for (int64_t i = 0; i < values.size(); ++i) {
    values.set(i, adjoint[static_cast<size_t>(i)]);
  }
  rank_.write(whole->slice, values);
  if (settings_.lightning >= Version{1, 7, 0} && settings_.gloo) {
    co_return co_await scattered_back(node, whole);
  }
  const std::vector<Ticket> after =
      streams_.take_waits_after_compute(communication_stream, node.site);
  const CommunicationOptions options{communication_stream, After(after), node.site};
  TensorPointer part = whole;
  int64_t begin = 0;
  if (settings_.lightning < Version{1, 7, 0}) {
    part->ready = rank_.all_reduce(node.group.id, whole->slice, Reduction::sum, options);
    begin = index_in(node.group) * elements;
  } else {
    part = tensors_.make(node.dtype, {elements});
    part->ready =
        rank_.reduce_scatter(node.group.id, whole->slice, part->slice, Reduction::sum, {}, options);
  }
  whole->uses[communication_stream] = part->uses[communication_stream] = part->ready;
  streams_.submitted(communication_stream, part->ready);
  co_await streams_.settle(part->ready, communication_stream);
  const Values sum = rank_.read(part->slice);
  Adjoint own;
  for (int64_t i = begin; i < begin + elements; ++i) {
    own.push_back(sum.number(i));
  }
  co_return own;
}

Task<Adjoint> Interpreter::scattered_back(const GradientNode& node, TensorPointer whole) {
  const int64_t elements = whole->shape.back();
  Adjoint own(static_cast<size_t>(elements));
  for (int64_t index = 0; index < whole->shape.front(); ++index) {
    const int32_t root = node.group.members.empty()
                             ? static_cast<int32_t>(index)
                             : node.group.members[static_cast<size_t>(index)];
    const TensorPointer part = tensors_.make(node.dtype, {elements});
    const std::vector<Ticket> after =
        streams_.take_waits_after_compute(communication_stream, node.site);
    const CommunicationOptions options{communication_stream, After(after), node.site};
    part->ready = rank_.scatter(node.group.id, root == rank_.id() ? whole->slice : Slice{},
                                part->slice, root, options);
    whole->uses[communication_stream] = part->uses[communication_stream] = part->ready;
    streams_.submitted(communication_stream, part->ready);
    co_await streams_.settle(part->ready, communication_stream);
    const Values values = rank_.read(part->slice);
    for (int64_t i = 0; i < elements; ++i) {
      own[static_cast<size_t>(i)] += values.number(i);
    }
  }
  co_return own;
}

}  // namespace lockstep
