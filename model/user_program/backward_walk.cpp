#include "model/user_program/backward_walk.hpp"

#include <algorithm>
#include <set>

#include "model/expression/tensor.hpp"
#include "model/user_program/statement_failure.hpp"

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

BackwardWalk::BackwardWalk(const StatementContext& context, TensorStore& tensors,
                           StreamOrder& streams)
    : rank_(context.rank),
      settings_(context.settings),
      log_(context.log),
      tensors_(tensors),
      streams_(streams) {}

std::map<std::string, Adjoint> BackwardWalk::expression_back(const GradientNode& node,
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
void BackwardWalk::check_node(const GradientNode& node, const ForwardResults& results,
                              SiteId site) {
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

Task<BackwardStart> BackwardWalk::gradient_of(GradientPointer variable, ForwardResults results,
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
Task<Adjoint> BackwardWalk::gathered_back(const GradientNode& node, const Adjoint& adjoint) {
  const auto ranks = static_cast<int64_t>(node.group.size(rank_.world_size()));
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
    begin = node.group.index_of(rank_.id()) * elements;
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

Task<Adjoint> BackwardWalk::scattered_back(const GradientNode& node, TensorPointer whole) {
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
