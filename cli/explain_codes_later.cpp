// Codes with a meaning that nothing looks for yet: a run without them says nothing about them.
#include "cli/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page later_pages_table[] = {
    {"LS403", "a resource is never given back",
     R"page(
What   Groups, handles or memory that grow from step to step.
Note   Lockstep does not look for this yet: that it is not reported means nothing.
)page"},
};

std::span<const Page> later_pages() { return later_pages_table; }

}  // namespace lockstep::cli
