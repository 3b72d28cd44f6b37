#include "io/scenario/load/digest.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "model/core/random.hpp"

namespace lockstep {

uint64_t digest_with(uint64_t digest, std::string_view text) {
  digest = random_key(digest, text.size());
  for (size_t begin = 0; begin < text.size(); begin += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + begin, std::min(sizeof word, text.size() - begin));
    digest = random_key(digest, word);
  }
  return digest;
}

namespace {

uint64_t digest_of(const Node& node, bool in_order);

uint64_t digest_of(const Entry& entry, bool in_order) {
  return random_key(digest_with(0, entry.key), digest_of(*entry.value, in_order));
}

uint64_t digest_of(const Node& node, bool in_order) {
  uint64_t digest = digest_with(static_cast<uint64_t>(node.kind), node.text);
  for (const NodePtr& item : node.items) {
    digest = random_key(digest, digest_of(*item, in_order));
  }
  uint64_t sum = 0;
  for (const Entry& entry : node.entries) {
    const uint64_t one = digest_of(entry, in_order);
    digest = in_order ? random_key(digest, one) : digest;
    sum += one;
  }
  return random_key(digest, sum);
}

// Digest of the relevant keys of a map, or of the whole of any other node.
uint64_t digest_of_some(const Node& node, const std::function<bool(const std::string&)>& counts) {
  uint64_t sum = digest_of(node.kind == Node::Kind::map ? Node{} : node, false);
  for (const Entry& entry : node.entries) {
    sum += counts(entry.key) ? digest_of(entry, false) : 0;
  }
  return sum;
}

}  // namespace

uint64_t digest_of_run(const Node& scenario) {
  uint64_t sum = 0;
  for (const Entry& entry : scenario.entries) {
    const uint64_t name = digest_with(0, entry.key);
    if (entry.key == "expect") {
      continue;
    }
    if (entry.key == "verify") {
      const Entry* numerics = entry.value->find("numerics");
      sum += numerics == nullptr ? 0 : random_key(name, digest_of(*numerics, false));
    } else if (entry.key == "cluster") {
      sum += random_key(name, digest_of_some(*entry.value, [](const std::string& key) {
                          return key != "calibration";
                        }));
    } else {
      sum += digest_of(entry, entry.key == "program" || entry.key == "metrics");
    }
  }
  return random_key(0, sum);
}

}  // namespace lockstep
