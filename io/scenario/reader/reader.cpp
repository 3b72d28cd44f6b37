#include "io/scenario/reader/reader.hpp"

#include <fmt/format.h>

namespace lockstep {

void Reader::fail_type(const Node& node, std::string_view key, std::string_view expected,
                       std::string remedy) {
  const std::string found = node.kind != Node::Kind::scalar ? std::string(kind_name(node))
                            : node.quoted                   ? "quoted text"
                                                            : fmt::format("`{}`", node.text);
  fail(node.mark, fmt::format("`{}` takes {}, not {}", key, expected, found), std::move(remedy));
}

}  // namespace lockstep
