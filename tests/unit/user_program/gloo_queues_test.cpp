#include "model/user_program/gloo_queues.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "model/core/queue_name.hpp"

using namespace lockstep;

namespace gloo_queues_test {

namespace {

Op message(OpKind kind, int32_t peer, int32_t tag = 0, GroupId group = {}) {
  Op op;
  op.kind = kind;
  op.peer = peer;
  op.tag = tag;
  op.group = group;
  return op;
}

}  // namespace

TEST_CASE("messages of one peer, tag, group and direction keep their order, others have none") {
  GlooQueues queues;
  const StreamId to_1 = queues.of(message(OpKind::send, 1));
  std::set<StreamId> others = {
      queues.of(message(OpKind::send, 2)), queues.of(message(OpKind::send, 1, 7)),
      queues.of(message(OpKind::send, 1, 0, GroupId{3})), queues.of(message(OpKind::recv, 1)),
      queues.of(message(OpKind::recv, any_rank))};
  CHECK(others.size() == 5);
  CHECK_FALSE(others.contains(to_1));
  CHECK(queues.of(message(OpKind::send, 1)) == to_1);
  CHECK(gloo_queue_name(to_1.queue()) == "sends");
  CHECK(gloo_queue_name(queues.of(message(OpKind::send, 1, 7)).queue()) == "sends 3");
  CHECK(gloo_queue_name(queues.of(message(OpKind::recv, 1)).queue()) == "receives");
  CHECK(gloo_queue_name(queue::communication).empty());
  CHECK(gloo_queue_name(queue::first_named).empty());
}

TEST_CASE("collectives of the world keep their order, and those of each other group theirs") {
  GlooQueues queues;
  const GroupId rows{1};
  const GroupId columns{2};
  const auto of = [&queues](OpKind kind, GroupId group) {
    return queues.of(message(kind, 0, 0, group));
  };
  CHECK(of(OpKind::all_reduce, world_group) == communication_stream);
  CHECK(of(OpKind::barrier, world_group) == communication_stream);
  CHECK(of(OpKind::all_reduce, rows) == of(OpKind::broadcast, rows));
  CHECK(of(OpKind::all_reduce, rows) != of(OpKind::all_reduce, columns));
  CHECK(gloo_queue_name(of(OpKind::all_reduce, rows).queue()) == "group");
  CHECK(gloo_queue_name(of(OpKind::all_reduce, columns).queue()) == "group 2");
}

TEST_CASE("too many peers share queues, of which none is another's") {
  GlooQueues queues;
  for (int32_t peer = 0; peer < 1000; ++peer) {
    const StreamId sends = queues.of(message(OpKind::send, peer));
    const StreamId receives = queues.of(message(OpKind::recv, peer));
    CHECK(queue::of_sends(sends.queue()));
    CHECK(queue::of_receives(receives.queue()));
    CHECK(queues.of(message(OpKind::send, peer)) == sends);
  }
  CHECK(queues.of(message(OpKind::send, 0)) == queues.of(message(OpKind::send, queue::messages)));
}

}  // namespace gloo_queues_test
