#include "io/scenario/reader/node.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "io/scenario/reader/text.hpp"
#include "io/scenario/reader/yaml_fault.hpp"

namespace lockstep {

std::string_view kind_name(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::scalar: return "a scalar";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a map";
  }
  return "";
}

namespace {

/// Ends the parse: the rest of the document would only repeat the complaint.
struct Stop {};

/// Builds the tree from the parser's events. A bound is checked at the event that passes it, before
/// the parser recurses further.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, const std::string& name, uint32_t file,
              std::vector<Diagnostic>& diagnostics, const DocumentLimits& limits)
      : text_(text), name_(name), file_(file), diagnostics_(diagnostics), limits_(limits) {}

  NodePtr take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) {
      fail(mark_at(mark), "a scenario is one YAML document", "remove what follows `---`");
      throw Stop();
    }
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto node = scalar_node(mark, anchor);
    node->kind = Node::Kind::null;
    const size_t position = static_cast<size_t>(std::max(mark.pos, 0));
    const bool written = spelled_null(text_, position) && expects_value();
    node->mark.length = written ? 4 : 1;
    if (!written) {
      node->faulty = true;
      report_empty(node->mark);
    }
    finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      fail(mark_at(mark), "an alias inside the value that it names has no end",
           "write the value out");
      throw Stop();
    }
    count(mark, found->second->size, found->second->height);
    add(found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    auto node = scalar_node(mark, anchor);
    node->kind = Node::Kind::scalar;
    node->quoted = tag == "!";
    node->text = value;
    const bool one_line = value.find('\n') == std::string::npos;
    node->mark.length = one_line ? static_cast<int>(value.size()) + (node->quoted ? 2 : 0) : 1;
    finish(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, Node::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, Node::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor = 0;
    bool flow = false;
    bool has_key = false;
    bool key_is_merge = false;
    int cut = 0;  ///< open parentheses of a flow value that commas have cut in pieces
    std::shared_ptr<Node> whole;  ///< that value, put together again
    std::string key;
    Mark key_mark;
    std::set<std::string> keys;           ///< written in this map
    std::map<std::string, size_t> index;  ///< of every key, those of `<<` included
  };

  Mark mark_at(const YAML::Mark& mark) const {
    return {file_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1, 1};
  }
  void fail(const Mark& mark, std::string message, std::string remedy) {
    diagnostics_.push_back(
        {{name_, mark.line, mark.column}, mark.length, std::move(message), std::move(remedy)});
  }
  bool expects_value() const {
    return stack_.empty() || stack_.back().node->kind == Node::Kind::list || stack_.back().has_key;
  }

  void count(const YAML::Mark& mark, int64_t nodes, int height) {
    nodes_ += nodes;
    if (nodes_ > limits_.nodes) {
      fail(mark_at(mark),
           fmt::format("the file holds more than {} values once aliases are followed",
                       limits_.nodes),
           "use fewer or smaller aliases");
      throw Stop();
    }
    if (static_cast<int>(stack_.size()) + height > limits_.depth) {
      fail(mark_at(mark), fmt::format("values are nested deeper than {} levels", limits_.depth),
           "no scenario needs that: check for an extra bracket");
      throw Stop();
    }
  }

  std::shared_ptr<Node> scalar_node(const YAML::Mark& mark, YAML::anchor_t) {
    count(mark, 1, 1);
    auto node = std::make_shared<Node>();
    node->mark = mark_at(mark);
    return node;
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark_at(mark), fmt::format("YAML tags such as `{}` are not part of the format", tag),
           "remove the tag");
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style, Node::Kind kind) {
    check_tag(mark, tag);
    if (!expects_value()) {
      if (const auto fault = find_bracket_fault(text_, name_)) {
        diagnostics_.push_back(*fault);
        throw Stop();
      }
      fail(mark_at(mark),
           fmt::format("a key must be text, not a {}", kind == Node::Kind::map ? "map" : "list"),
           "quote what starts with a brace or a bracket");
      throw Stop();
    }
    count(mark, 1, 1);
    Open opened;
    opened.node = std::make_shared<Node>();
    opened.node->kind = kind;
    opened.node->mark = mark_at(mark);
    opened.anchor = anchor;
    opened.flow = style == YAML::EmitterStyle::Flow;
    stack_.push_back(std::move(opened));
  }

  void close() {
    Open closed = std::move(stack_.back());
    stack_.pop_back();
    Node& node = *closed.node;
    for (const NodePtr& item : node.items) {
      node.size += item->size;
      node.height = std::max(node.height, item->height + 1);
    }
    for (const Entry& entry : node.entries) {
      node.size += entry.value->size;
      node.height = std::max(node.height, entry.value->height + 1);
    }
    finish(std::move(closed.node), closed.anchor);
  }

  void finish(std::shared_ptr<Node> node, YAML::anchor_t anchor) {
    NodePtr done = std::move(node);
    if (anchor != YAML::NullAnchor) {
      anchors_[anchor] = done;
    }
    add(std::move(done));
  }

  void add(NodePtr node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node->kind == Node::Kind::list) {
      const bool goes_on = parent.cut > 0;
      if (piece_of_cut_value(parent, *node)) {
        if (goes_on) {
          parent.whole->text += ", " + node->text;
        } else {
          parent.node->items.push_back(begin_whole(parent, *node));
        }
      } else if (!node->faulty) {
        parent.node->items.push_back(std::move(node));
      }
    } else if (!parent.has_key) {
      take_key(parent, *node);
    } else {
      parent.has_key = false;
      take_value(parent, std::move(node));
    }
  }

  void take_key(Open& map, const Node& node) {
    map.has_key = true;
    map.key_mark = node.mark;
    map.key = node.text;
    map.key_is_merge = false;
    if (node.kind != Node::Kind::scalar) {
      if (node.kind != Node::Kind::null) {
        fail(node.mark, "a key must be text", "write the key out");
      }
      map.key = "null";
      return;
    }
    if (map.cut > 0) {
      return;
    }
    map.key_is_merge = node.text == "<<" && !node.quoted;
    if (!map.keys.insert(node.text).second && !map.key_is_merge) {
      fail(node.mark, fmt::format("duplicate key `{}` in this map", node.text),
           "keep one of the two");
    }
  }

  void take_value(Open& map, NodePtr node) {
    if (map.cut > 0) {
      map.whole->text += ", " + map.key;
      map.cut += open_parentheses(map.key);
      if (map.cut > 0 && node->kind == Node::Kind::scalar) {
        map.whole->text += ": " + node->text;
        map.cut += open_parentheses(node->text);
      }
      return;
    }
    if (map.key_is_merge) {
      merge_into(map, *node);
      return;
    }
    if (piece_of_cut_value(map, *node)) {
      node = begin_whole(map, *node);
    }
    put(map, Entry{map.key, map.key_mark, std::move(node)}, true);
  }

  static void put(Open& map, Entry entry, bool replace) {
    const auto [place, added] = map.index.emplace(entry.key, map.node->entries.size());
    if (added) {
      map.node->entries.push_back(std::move(entry));
    } else if (replace) {
      map.node->entries[place->second] = std::move(entry);
    }
  }

  /// YAML's merge key: what is written in the map itself wins, then the earlier of a list.
  void merge_into(Open& map, const Node& source) {
    if (source.kind == Node::Kind::list) {
      for (const NodePtr& item : source.items) {
        merge_into(map, *item);
      }
      return;
    }
    if (source.kind != Node::Kind::map) {
      fail(map.key_mark, "`<<` takes a map or a list of maps", "write `<<: *anchor_of_a_map`");
      return;
    }
    nodes_ += source.size;
    for (const Entry& entry : source.entries) {
      put(map, entry, false);
    }
    if (nodes_ > limits_.nodes) {
      fail(map.key_mark,
           fmt::format("the file holds more than {} values once `<<` is followed", limits_.nodes),
           "use fewer or smaller aliases");
      throw Stop();
    }
  }

  /// What was meant, so that nothing else is complained about.
  static std::shared_ptr<Node> begin_whole(Open& parent, const Node& first) {
    parent.whole = std::make_shared<Node>(first);
    parent.whole->quoted = true;
    return parent.whole;
  }

  /// In `{tensor: full(2, 3)}` YAML cuts at the comma and leaves `full(2`. Says so once; the other
  /// pieces belong to the first.
  bool piece_of_cut_value(Open& parent, const Node& node) {
    if (!parent.flow || node.kind != Node::Kind::scalar || node.quoted) {
      if (parent.cut > 0 && node.kind != Node::Kind::scalar) {
        return true;
      }
      return false;
    }
    const int balance = open_parentheses(node.text);
    if (parent.cut == 0 && balance <= 0) {
      return false;
    }
    if (parent.cut == 0) {
      fail(node.mark, fmt::format("a comma inside braces or brackets has cut `{}` off", node.text),
           "quote the whole value: \"f(a, b)\"");
    }
    parent.cut = std::max(0, parent.cut + balance);
    return true;
  }

  void report_empty(Mark mark) {
    if (!stack_.empty()) {
      const Open& parent = stack_.back();
      if (parent.cut > 0) {
        return;
      }
      if (parent.node->kind == Node::Kind::map && parent.has_key) {
        fail(parent.key_mark, fmt::format("the key `{}` has no value", parent.key),
             "write a value, or `null` for the default");
        return;
      }
      fail(mark, parent.node->kind == Node::Kind::map ? "a key is empty" : "a list item is empty",
           "write it, or remove it");
      return;
    }
    fail(mark, "the file is empty", "a scenario starts with `version: 1`");
  }

  const std::string& text_;
  const std::string& name_;
  uint32_t file_;
  std::vector<Diagnostic>& diagnostics_;
  DocumentLimits limits_;
  bool started_ = false;
  int64_t nodes_ = 0;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, NodePtr> anchors_;
  NodePtr root_;
};

}  // namespace

NodePtr parse_document(const std::string& text, const std::string& name, uint32_t file,
                       std::vector<Diagnostic>& diagnostics, const DocumentLimits& limits) {
  if (const std::optional<Diagnostic> unreadable = check_text(text, name, limits.bytes)) {
    diagnostics.push_back(*unreadable);
    return nullptr;
  }
  TreeBuilder builder(text, name, file, diagnostics, limits);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    bool any = false;
    while (parser.HandleNextDocument(builder)) {
      any = true;
    }
    if (!any) {
      diagnostics.push_back(
          {{name, 1, 1}, 1, "the file is empty", "a scenario starts with `version: 1`"});
    }
  } catch (const Stop&) {
    return nullptr;
  } catch (const YAML::Exception& error) {
    diagnostics.push_back(explain_yaml_fault(text, name, std::max(error.mark.line, 0) + 1,
                                             std::max(error.mark.column, 0) + 1, error.msg));
    return nullptr;
  }
  return builder.take_root();
}

}  // namespace lockstep
