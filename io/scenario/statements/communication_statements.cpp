#include <fmt/format.h>

#include "io/expression/parser.hpp"
#include "io/scenario/statements/statement_fields.hpp"

namespace lockstep {
namespace {

using Kind = StatementKind;

template <auto Member, class Form = FormOfMember<Member>>
Field<Statement> data_field(KeyRow row) {
  return part_field<&Statement::communication, Member, Form>(row);
}

Field<Statement> op_field() {
  return data_field<&CommunicationSpec::op>({"op", "sum", "reduction operator"});
}
Field<Statement> source_field() {
  return data_field<&CommunicationSpec::src>({"src", "0", "the root"});
}
Field<Statement> target_field(std::string_view default_text, std::string_view meaning) {
  return data_field<&CommunicationSpec::dst>({"dst", default_text, meaning});
}
Field<Statement> tag_field() {
  return data_field<&CommunicationSpec::tag>({"tag", "0", "matches send and recv (gloo)"});
}
Field<Statement> input_splits() {
  return data_field<&CommunicationSpec::input_split_sizes>(
      {"input_split_sizes", "equal parts", "rows for each rank"});
}
Field<Statement> output_splits() {
  return data_field<&CommunicationSpec::output_split_sizes>(
      {"output_split_sizes", "equal parts", "rows from each rank"});
}

Field<Statement> name_field() {
  return data_field<&CommunicationSpec::name>(
      {"name", "none", "over Horovod: under which the ranks meet, such as \"layer.{i}\""});
}

/// `src` of recv: an expression, or the word `any`.
Field<Statement> any_source_field() {
  KeyRow row{"src", "required", "the sender, or `any`"};
  describe<ExpressionForm>(row, false);
  row.type = "expr, or `any`";
  return {row, [](Reader& reader, const Node& node, const KeyRow& known, Statement& statement) {
            if (node.kind == Node::Kind::scalar && node.text == "any") {
              statement.communication.any_source = true;
              return;
            }
            fill<ExpressionForm>(reader, node, known, statement.communication.src);
          }};
}

/// `all`, as an expression. It cannot fail.
std::optional<Expression> every_rank(const SourcePlace& place) {
  ParsedExpression parsed = parse_expression("range(0, world_size)", place);
  const auto* expression = std::get_if<Expression>(&parsed);
  return expression == nullptr ? std::nullopt : std::optional(*expression);
}

/// `ranks` of new_group: a list, an expression that gives one, or the word `all`.
Field<Statement> group_ranks_field() {
  KeyRow row{"ranks", "", "members, in the order of their ranks in the group"};
  describe<ExpressionForm>(row, false);
  row.type = "list of expr, expr, or `all`";
  return {row, [](Reader& reader, const Node& node, const KeyRow& known, Statement& statement) {
            if (node.kind == Node::Kind::list) {
              fill<ExpressionForm>(reader, node, known, statement.ranks);
            } else if (node.kind == Node::Kind::scalar && node.text == "all") {
              const SourcePlace place = reader.place(node);
              if (auto ranks = every_rank(place)) {
                statement.ranks_expression = Placed<Expression>{std::move(*ranks), place};
              }
            } else {
              fill<ExpressionForm>(reader, node, known, statement.ranks_expression);
            }
          }};
}

StatementRow collective(Kind kind, StatementFields own, std::string_view meaning) {
  return {kind, "tensor", {"tensor|elements"}, meaning, communication_fields(std::move(own))};
}

std::vector<StatementRow> collective_rows() {
  return {
      collective(Kind::all_reduce,
                 {data_field<&CommunicationSpec::op>(
                      {"op", "sum; avg over Horovod", "reduction operator"}),
                  name_field()},
                 "the same result on every rank"),
      collective(Kind::reduce_scatter, {op_field(), input_splits()},
                 "equal parts, or `input_split_sizes`"),
      collective(Kind::all_gather,
                 {data_field<&CommunicationSpec::sync_grads>(
                      {"sync_grads", "false", "gradients flow through it"}),
                  name_field()},
                 "result `[world_size, *shape]`; of a list: one call per element"),
      collective(Kind::broadcast, {source_field(), name_field()}, "the root's data everywhere"),
      collective(Kind::scatter, {source_field()}, "a part of the root's data each"),
      collective(Kind::reduce, {target_field("0", "the root"), op_field()},
                 "the result on the root only"),
      collective(Kind::gather, {target_field("0", "the root"), op_field()}, "all data on the root"),
      collective(Kind::all_to_all, {input_splits(), output_splits()},
                 "a part from each rank to each rank")};
}

}  // namespace

StatementFields communication_fields(StatementFields own) {
  StatementFields fields = {
      data_field<&CommunicationSpec::tensor>({"tensor", "", "the data"}),
      data_field<&CommunicationSpec::elements>(
          {"elements", "", "number of elements, without values; see `dtype`"}),
      data_field<&CommunicationSpec::dtype>({"dtype", "fp32", "of `elements`"}),
      field<&Statement::group, NameForm>({"group", "world", "the group of ranks that take part"}),
      field<&Statement::stream, NameForm>({"stream", "comm", "the stream that it runs on"}),
      field<&Statement::asynchronous>({"async", "false", "the result is pending until `wait`"}),
      field<&Statement::result, NameForm>({"as", "replaces the data", "the name of the result"}),
  };
  fields.insert(fields.end(), own.begin(), own.end());
  return fields;
}

std::vector<StatementRow> communication_rows() {
  std::vector<StatementRow> rows = collective_rows();
  const std::vector<StatementRow> others = {
      {Kind::send,
       "tensor",
       {"tensor|elements", "dst"},
       "to one rank",
       communication_fields({target_field("required", "the receiver"), tag_field()})},
      {Kind::recv,
       "tensor",
       {"tensor|elements", "src"},
       "from one rank",
       communication_fields({any_source_field(), tag_field()})},
      {Kind::batch_isend_irecv,
       "statements",
       {"statements"},
       "send and recv issued as one NCCL group; none waits for another of the list",
       {field<&Statement::body, StatementsForm>({"statements", "required", "send and recv"}),
        field<&Statement::asynchronous>({"async", "false", "pending until `wait`"}),
        field<&Statement::result, NameForm>({"as", "", "the name to wait for"})}},
      {Kind::grouped,
       "statements",
       {"statements"},
       "one grouped call (ncclGroupStart/End): unordered inside, with one result to wait for",
       {field<&Statement::body, StatementsForm>(
            {"statements", "required", "communication statements"}),
        field<&Statement::asynchronous>({"async", "false", "pending until `wait`"}),
        field<&Statement::result, NameForm>({"as", "", "the name to wait for"})}},
      {Kind::barrier,
       "group",
       {},
       "waits until every rank of the group has reached it",
       {field<&Statement::group, NameForm>({"group", "world", "the group of ranks that take part"}),
        field<&Statement::asynchronous>({"async", "false", "pending until `wait`"}),
        field<&Statement::result, NameForm>({"as", "", "the name to wait for"})}},
      {Kind::join,
       "",
       {},
       "hvd.join, over Horovod: gives zeros to the others' all_reduces until all have joined",
       {}},
      {Kind::new_group,
       "ranks",
       {"ranks|color", "as"},
       "a collective over all ranks; `color` as in ncclCommSplit",
       {group_ranks_field(),
        field<&Statement::color>({"color", "", "ranks of one color form a group"}),
        field<&Statement::timeout>(
            {"timeout", "torch's, not that of the process group", "how long its calls may take"}),
        field<&Statement::result, NameForm>({"as", "required", "the name of the group"})}},
  };
  rows.insert(rows.end(), others.begin(), others.end());
  return rows;
}

}  // namespace lockstep
