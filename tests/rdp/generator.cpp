#include "generator.h"

#include <algorithm>
#include <map>

#include "base/convert.h"
#include "interp/interp.h"
#include "ir/verify.h"
#include "ops/registry.h"

namespace selkie::tests {
namespace {

using ir::Type;
using ir::Value;
using Random = std::mt19937_64;

constexpr int64_t sizes[] = {0, 1, 1, 2, 2, 3, 4, 5, 6, 8};
constexpr int64_t max_elements = 4096;

int64_t pick(Random& random, int64_t below) { return static_cast<int64_t>(random() % static_cast<uint64_t>(below)); }
bool chance(Random& random, int percent) { return pick(random, 100) < percent; }

HostValue random_tensor(DType dtype, const Dims& dims, Random& random) {
  std::vector<int64_t> integers;
  std::vector<double> reals;
  for (int64_t i = 0; i < element_count(dims); ++i) {
    integers.push_back(dtype == DType::boolean ? pick(random, 2) : pick(random, 8) - 1);
    reals.push_back(static_cast<double>(pick(random, 2000) - 1000) / 256);
  }
  return is_float(dtype) ? narrow<double>(reals, dtype, dims) : narrow<int64_t>(integers, dtype, dims);
}

// A value that exists, with what it is for the inputs at hand.
struct Entry {
  Value* value;
  HostValue actual;
  const Tensor& tensor() const { return actual.tensor(); }
  DType dtype() const { return tensor().dtype(); }
  int64_t rank() const { return tensor().rank(); }
};

// Nodes that were taken out of a region, with the values they gave.
struct Taken {
  std::vector<std::unique_ptr<ir::Node>> nodes;
  std::vector<Entry> values;
};

class Generator {
 public:
  Generator(uint64_t seed, int nodes, Mix mix)
      : random_(seed), budget_(nodes), mix_(mix), module_(std::make_unique<ir::Module>()) {
    main_ = &module_->add_function("main");
    region_ = &main_->body;
  }

  RandomProgram run() {
    inputs();
    while (budget_ > 0) step(0);
    for (size_t i = 0; i < 3 && i < pool_.size(); ++i) {
      main_->body.yields.push_back(pool_[pool_.size() - 1 - i].value);
      main_->result_types.emplace_back();
      main_->result_names.push_back(fmt::format("out{}", i));
    }
    ir::verify(*module_);
    return {std::move(module_), std::move(actual_inputs_)};
  }

 private:
  // --- inputs ---

  void inputs() {
    std::map<std::string, int64_t> symbols;
    for (const char* name : {"A", "B", "C", "D"}) symbols[name] = sizes[pick(random_, std::size(sizes))];
    int64_t count = 2 + pick(random_, 3);
    for (int64_t i = 0; i < count; ++i) {
      DType dtype = i == 0                ? DType::f32
                    : chance(random_, 60) ? DType::f32
                    : chance(random_, 80) ? DType::i64
                                          : DType::boolean;
      Dims dims;
      ir::SymDims declared;
      int64_t rank = dtype == DType::i64 && chance(random_, 70) ? pick(random_, 2) : pick(random_, 4);
      for (int64_t axis = 0; axis < rank; ++axis) {
        auto at = symbols.begin();
        std::advance(at, pick(random_, 4));
        bool named = chance(random_, 65) && !(dtype == DType::i64 && rank == 1);
        int64_t size = named                 ? at->second
                       : dtype == DType::i64 ? 1 + pick(random_, 3)
                                             : sizes[pick(random_, std::size(sizes))];
        dims.push_back(size);
        bool constant = !named && chance(random_, 60);
        declared.push_back(named      ? module_->symbols().symbol(at->first)
                           : constant ? module_->symbols().constant(size)
                                      : module_->symbols().symbol(fmt::format("x{}_{}", i, axis)));
      }
      Type type = Type::tensor(dtype, std::move(declared));
      if (chance(random_, 7)) type.dims.reset();
      Value* parameter = main_->body.add_parameter(fmt::format("in{}", i), std::move(type));
      actual_inputs_.push_back(random_tensor(dtype, dims, random_));
      pool_.push_back({parameter, actual_inputs_.back()});
    }
  }

  // --- nodes ---

  const Entry* any(const std::function<bool(const Entry&)>& fits) {
    std::vector<const Entry*> found;
    for (const Entry& e : pool_)
      if (e.actual.is_tensor() && fits(e)) found.push_back(&e);
    // Newer values more often, so that chains grow.
    if (found.empty()) return nullptr;
    auto n = static_cast<int64_t>(found.size());
    return found[static_cast<size_t>(std::max(pick(random_, n), pick(random_, n)))];
  }
  const Entry* real(int64_t least_rank = 0) {
    return any([=](const Entry& e) { return e.dtype() == DType::f32 && e.rank() >= least_rank; });
  }
  const Entry* integers() {
    return any([](const Entry& e) { return e.dtype() == DType::i64 && e.tensor().count() <= 16; });
  }
  const Entry* scalar() {
    return any([](const Entry& e) { return e.dtype() == DType::i64 && e.tensor().count() == 1; });
  }

  Value* constant(Tensor tensor) { return module_->add_constant("c", std::move(tensor)); }
  Value* list(const std::vector<int64_t>& values) { return constant(Tensor::of_i64(values)); }

  // Appends a node if it runs on the inputs at hand, and says whether it did.
  bool add(std::string_view op, std::vector<Value*> operands, ir::Attributes attrs = {}, size_t results = 1,
           std::vector<std::unique_ptr<ir::Region>> regions = {}) {
    auto node = std::make_unique<ir::Node>();
    node->op = ops::op_set().find(op);
    CHECK(node->op != nullptr, "{}", op);
    node->operands = std::move(operands);
    node->attrs = std::move(attrs);
    node->source = fmt::format("{}_{}", op, ++names_);
    for (size_t i = 0; i < results; ++i) node->add_result(fmt::format("v{}_{}", names_, i));
    for (auto& region : regions) {
      region->parent = node.get();
      node->regions.push_back(std::move(region));
    }
    std::vector<HostValue> values;
    try {
      values = evaluate(*node);
    } catch (const Error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
    for (const HostValue& v : values)
      if (v.is_tensor() && v.tensor().count() > max_elements) return false;
    for (size_t i = 0; i < results; ++i) pool_.push_back({node->results[i].get(), values[i]});
    region_->nodes.push_back(std::move(node));
    --budget_;
    return true;
  }

  // The values of a new node: by a run of a module that holds it and the values it uses as inputs.
  std::vector<HostValue> evaluate(ir::Node& node) {
    ir::Module scratch;
    ir::Function& main = scratch.add_function("main");
    std::vector<HostValue> inputs;
    std::map<const Value*, Value*> stand_ins;
    std::vector<std::pair<Value**, Value*>> undo;
    auto replace = [&](Value*& use) {
      if (use == nullptr || use->constant != nullptr) return;
      auto at = std::find_if(pool_.begin(), pool_.end(), [&](const Entry& e) { return e.value == use; });
      if (at == pool_.end()) return;  // defined inside
      auto [slot, fresh] = stand_ins.try_emplace(use);
      if (fresh) {
        slot->second = main.body.add_parameter(use->name, Type{});
        inputs.push_back(at->actual);
      }
      undo.emplace_back(&use, use);
      use = slot->second;
    };
    std::function<void(ir::Node&)> walk = [&](ir::Node& n) {
      for (Value*& v : n.operands) replace(v);
      for (auto& region : n.regions) {
        for (auto& inner : region->nodes) walk(*inner);
        for (Value*& v : region->yields) replace(v);
      }
    };
    walk(node);
    for (auto& r : node.results) main.body.yields.push_back(r.get());
    main.body.nodes.emplace_back(&node);
    interp::Options options;
    options.limits.loop_trips = 12;
    options.memory_limit = 1 << 19;
    std::vector<HostValue> values;
    auto restore = [&] {
      main.body.nodes[0].release();
      main.body.nodes.clear();
      for (auto [use, old] : undo) *use = old;
    };
    try {
      values = interp::run(scratch, std::move(inputs), options);
    } catch (...) {
      restore();
      throw;
    }
    restore();
    return values;
  }

  static ir::Attributes attr(std::string_view name, ir::Attribute value) {
    ir::Attributes out;
    out.set(name, std::move(value));
    return out;
  }

  void step(int depth) {
    --budget_;  // so that failing attempts end, too
    if (mix_ == Mix::regions && step_of_regions(depth)) return;
    int64_t kind = pick(random_, 100);
    if (kind < 30)
      shape_arithmetic();
    else if (kind < 84)
      data();
    else if (kind < 90)
      data_dependent();
    else if (depth < 2 && kind < 95)
      branch(depth);
    else if (depth < 2)
      loop(depth);
  }

  // --- families ---

  void shape_arithmetic() {
    const Entry* x = real();
    const Entry* a = integers();
    const Entry* b = integers();
    switch (pick(random_, 14)) {
      case 0:
      case 1:
      case 2:
        if (x) add("shape", {x->value});
        break;
      case 3:
        if (x) add("size", {x->value});
        break;
      case 4:
        if (a && a->rank() == 1 && a->tensor().count() > 0)
          add("gather", {a->value, constant(Tensor::scalar_i64(pick(random_, a->tensor().count())))});
        break;
      case 5: {
        static constexpr std::string_view ops[] = {"add", "sub", "mul", "div", "mod", "min", "max"};
        if (a && b) add(ops[pick(random_, std::size(ops))], {a->value, b->value});
        break;
      }
      case 6: {
        static constexpr std::string_view ops[] = {"add", "sub", "mul", "div", "mod", "min", "max"};
        if (a) add(ops[pick(random_, std::size(ops))], {a->value, constant(Tensor::scalar_i64(1 + pick(random_, 4)))});
        break;
      }
      case 7:
        if (a && b && a->rank() == 1 && b->rank() == 1) add("concat", {a->value, b->value}, attr("axis", int64_t{0}));
        break;
      case 8:
        if (a && a->rank() == 1)
          add("slice", {a->value, list({pick(random_, 3) - 1}), list({pick(random_, 4)}), list({0})});
        break;
      case 9: {
        static constexpr std::string_view ops[] = {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"};
        if (a) add(ops[pick(random_, 4)], {a->value}, attr("keepdims", pick(random_, 2)));
        break;
      }
      case 10: {
        static constexpr std::string_view ops[] = {"equal", "less", "greater_or_equal", "greater"};
        if (a && b) add(ops[pick(random_, 4)], {a->value, b->value});
        break;
      }
      case 11:
        if (const Entry* c = any([](const Entry& e) { return e.dtype() == DType::boolean; }); c && a && b)
          add("where", {c->value, a->value, b->value});
        break;
      case 12:
        if (a && a->rank() == 0) add("unsqueeze", {a->value, list({0})});
        break;
      default:
        through_float(a);
    }
  }

  // Integers through floats and back, as exporters write scaled sizes.
  void through_float(const Entry* a) {
    if (!a || !add("cast", {a->value}, attr("to", static_cast<int64_t>(DType::f32)))) return;
    float factors[] = {2.0F, 0.5F, 1.5F, 3.0F, 0.25F};
    float factor = factors[pick(random_, 5)];
    Value* constant_factor = constant(Tensor::from<float>(DType::f32, {}, {&factor, 1}));
    if (!add(chance(random_, 50) ? "mul" : "div", {pool_.back().value, constant_factor})) return;
    if (!add(chance(random_, 50) ? "floor" : "ceil", {pool_.back().value})) return;
    add("cast", {pool_.back().value}, attr("to", static_cast<int64_t>(DType::i64)));
  }

  void data() {
    const Entry* x = real();
    if (!x) return;
    int64_t rank = x->rank();
    int64_t axis = rank > 0 ? pick(random_, rank) : 0;
    switch (pick(random_, 22)) {
      case 0: {
        static constexpr std::string_view ops[] = {"relu", "neg", "sigmoid", "abs", "identity"};
        add(ops[pick(random_, 5)], {x->value});
        break;
      }
      case 1:
      case 2:
      case 3: {
        static constexpr std::string_view ops[] = {"add", "mul", "sub", "max"};
        if (const Entry* y = real()) add(ops[pick(random_, 4)], {x->value, y->value});
        break;
      }
      case 4:
        if (const Entry* y = any([&](const Entry& e) { return e.dtype() == DType::f32 && e.rank() == rank; });
            y && rank)
          add("concat", {x->value, y->value}, attr("axis", axis - (chance(random_, 30) ? rank : 0)));
        break;
      case 5:
        if (rank > 1) {
          std::vector<int64_t> perm(static_cast<size_t>(rank));
          for (int64_t i = 0; i < rank; ++i) perm[static_cast<size_t>(i)] = i;
          std::shuffle(perm.begin(), perm.end(), random_);
          add("transpose", {x->value}, attr("perm", perm));
        }
        break;
      case 6:
      case 7:
        reshape(*x);
        break;
      case 8:
        if (rank > 0) slice(*x, axis);
        break;
      case 9:
        if (const Entry* i = integers(); i && rank) add("gather", {x->value, i->value}, attr("axis", axis));
        break;
      case 10:
        add("unsqueeze", {x->value, list({pick(random_, rank + 1)})});
        break;
      case 11:
        if (rank) add("squeeze", {x->value, list({axis})});
        break;
      case 12: {
        static constexpr std::string_view ops[] = {"reduce_sum", "reduce_mean", "reduce_max"};
        ir::Attributes attrs = attr("keepdims", pick(random_, 2));
        add(ops[pick(random_, 3)], {x->value, rank ? list({axis}) : nullptr}, attrs);
        break;
      }
      case 13:
        if (const Entry* y = real(1); y && rank) add("matmul", {x->value, y->value});
        break;
      case 14:
        if (const Entry* s = any([](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 1; }))
          add("expand", {x->value, s->value});
        break;
      case 15:
        if (rank) add("split", {x->value, nullptr}, attr("axis", axis), 2);
        break;
      case 16:
        if (rank == 1)
          if (const Entry* s = any(
                  [](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 1 && e.tensor().count() == 1; }))
            add("tile", {x->value, s->value});
        break;
      case 17:
        if (const Entry* k =
                any([](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 1 && e.tensor().count() == 1; });
            k && rank)
          add("top_k", {x->value, k->value}, attr("axis", axis), 2);
        break;
      case 18:
        if (const Entry* s = any([](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 1; }))
          add("constant_of_shape", {s->value});
        break;
      case 19:
        if (const Entry* n = scalar(); n && n->rank() == 0)
          add("range", {constant(Tensor::scalar_i64(pick(random_, 3))), n->value,
                        constant(Tensor::scalar_i64(1 + pick(random_, 2)))});
        break;
      case 20:
        if (rank == 3 && x->tensor().dim(1) > 0) convolution(*x);
        break;
      default:
        pad_or_flatten(*x, axis);
    }
  }

  void convolution(const Entry& x) {
    Dims dims{2, x.tensor().dim(1), 1 + pick(random_, 3)};
    ir::Attributes attrs = attr("strides", std::vector<int64_t>{1 + pick(random_, 2)});
    if (chance(random_, 50)) attrs.set("pads", std::vector<int64_t>{pick(random_, 2), pick(random_, 2)});
    if (chance(random_, 30)) {
      ir::Attributes pool = attr("kernel_shape", std::vector<int64_t>{2});
      pool.set("strides", std::vector<int64_t>{2});
      pool.set("ceil_mode", pick(random_, 2));
      add("max_pool", {x.value}, pool);
      return;
    }
    add("conv", {x.value, constant(random_tensor(DType::f32, dims, random_).tensor())}, attrs);
  }

  void pad_or_flatten(const Entry& x, int64_t axis) {
    if (chance(random_, 40)) {
      add("flatten", {x.value}, attr("axis", axis));
      return;
    }
    std::vector<int64_t> pads;
    for (int64_t i = 0; i < 2 * x.rank(); ++i) pads.push_back(pick(random_, 3));
    add("pad", {x.value, list(pads)});
  }

  // To a shape from shape arithmetic, or with -1 and 0 in a constant one.
  void reshape(const Entry& x) {
    if (chance(random_, 50)) {
      if (const Entry* s = any([](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 1; }))
        add("reshape", {x.value, s->value}, attr("allowzero", int64_t{chance(random_, 15)}));
      return;
    }
    std::vector<int64_t> shape;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (!chance(random_, 40)) shape.push_back(0);
    shape.insert(shape.begin() + pick(random_, static_cast<int64_t>(shape.size()) + 1), -1);
    add("reshape", {x.value, list(shape)});
  }

  void slice(const Entry& x, int64_t axis) {
    Value* start = list({pick(random_, 4) - 2});
    Value* end = list({chance(random_, 40) ? int64_t{9223372036854775807} : pick(random_, 6) - 2});
    const Entry* symbolic =
        any([](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 1 && e.tensor().count() == 1; });
    if (symbolic && chance(random_, 50)) (chance(random_, 50) ? start : end) = symbolic->value;
    int64_t step = chance(random_, 70) ? 1 : chance(random_, 50) ? 2 : -1;
    add("slice", {x.value, start, end, list({axis}), list({step})});
  }

  void data_dependent() {
    const Entry* x = real();
    if (!x) return;
    switch (pick(random_, 4)) {
      case 0:
        if (add("relu", {x->value})) add("non_zero", {pool_.back().value});
        break;
      case 1:
        if (const Entry* c = any([](const Entry& e) { return e.dtype() == DType::boolean && e.rank() == 1; }))
          add("compress", {x->value, c->value});
        break;
      case 2:
        add("unique", {x->value}, {}, 4);
        break;
      default:
        if (add("reduce_sum", {x->value}, attr("keepdims", int64_t{0})))
          add("greater", {pool_.back().value, constant(random_tensor(DType::f32, {}, random_).tensor())});
    }
  }

  // --- mostly regions ---

  // Whether it was one of these.
  bool step_of_regions(int depth) {
    constexpr int deepest = 4;
    int64_t kind = pick(random_, 100);
    if (kind < 14)
      sequences();
    else if (kind < 20)
      conditions();
    else if (depth < deepest && kind < 34)
      branch(depth);
    else if (depth < deepest && kind < 48)
      counted_loop(depth);
    else if (depth < deepest && kind < 54)
      scan_of_axes(depth);
    else if (depth < deepest && kind < 58)
      map(depth);
    else if (kind < 63)
      recurrence();
    else if (kind < 67)
      work_around_arms();
    else
      return false;
    return true;
  }

  static Value* append(ir::Region& region, std::string_view op, std::vector<Value*> operands,
                       ir::Attributes attrs = {}) {
    auto node = std::make_unique<ir::Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    node->attrs = std::move(attrs);
    Value* result = node->add_result(std::string(op));
    region.nodes.push_back(std::move(node));
    return result;
  }

  // Slices of a tensor times weights, as a scan or as a loop that picks them; sometimes with work before and after.
  void recurrence() {
    const Entry* input = real(2);
    if (input == nullptr) return;
    Entry whole = *input;
    int64_t axis = pick(random_, whole.rank());
    Dims slice = whole.tensor().dims();
    slice.erase(slice.begin() + axis);
    int64_t columns = 1 + pick(random_, 3);
    Value* weights = constant(random_tensor(DType::f32, {slice.back(), columns}, random_).tensor());
    Value* initial = constant(random_tensor(DType::f32, {columns}, random_).tensor());
    auto body = std::make_unique<ir::Region>();
    bool is_scan = chance(random_, 60);
    Value* index = is_scan ? nullptr : body->add_parameter("i", Type{});
    Value* go_on = is_scan ? nullptr : body->add_parameter("go", Type{});
    Value* state = body->add_parameter("s", Type{});
    Value* x =
        is_scan ? body->add_parameter("x", Type{}) : append(*body, "gather", {whole.value, index}, attr("axis", axis));
    if (chance(random_, 50)) x = append(*body, "tanh", {x});
    Value* product = append(*body, "matmul", {x, weights});
    if (chance(random_, 50)) product = append(*body, "add", {product, initial});
    for (size_t i = 1; i < slice.size(); ++i)
      product = append(*body, "reduce_sum", {product, list({0})}, attr("keepdims", int64_t{0}));
    Value* next = append(*body, "add", {state, product});
    if (!is_scan) body->yields.push_back(chance(random_, 20) ? leaving_after(*body, index) : go_on);
    body->yields.insert(body->yields.end(), {next, chance(random_, 50) ? x : next});
    if (is_scan) {
      ir::Attributes attrs = attr("num_scan_inputs", int64_t{1});
      attrs.set("scan_input_axes", std::vector<int64_t>{axis});
      attrs.set("scan_input_directions", std::vector<int64_t>{pick(random_, 2)});
      return add_loop("scan", {initial, whole.value}, std::move(attrs), 2, std::move(body));
    }
    if (!add("shape", {whole.value})) return;
    if (!add("gather", {pool_.back().value, constant(Tensor::scalar_i64(axis))}, attr("axis", int64_t{0}))) return;
    add_loop("loop", {pool_.back().value, nullptr, initial}, {}, 2, std::move(body));
  }

  // Work before a branch that one arm uses, and work that both arms do.
  void work_around_arms() {
    const Entry* x = real();
    const Entry* condition = any([](const Entry& e) { return e.dtype() == DType::boolean && e.tensor().count() == 1; });
    if (x == nullptr || condition == nullptr) return;
    Value* from = x->value;
    Value* chosen = condition->value;
    if (!add("neg", {from})) return;
    Value* before = pool_.back().value;
    std::vector<std::unique_ptr<ir::Region>> arms;
    for (int arm = 0; arm < 2; ++arm) {
      arms.push_back(std::make_unique<ir::Region>());
      Value* same = append(*arms.back(), "tanh", {from});
      arms.back()->yields.push_back(append(*arms.back(), "add", {same, arm == 0 ? before : same}));
    }
    add("if", {chosen}, {}, 1, std::move(arms));
    std::erase_if(pool_, [&](const Entry& e) { return e.value == before; });  // nobody else uses it
  }

  const Entry* sequence() {
    std::vector<const Entry*> found;
    for (const Entry& e : pool_)
      if (e.actual.is_sequence() && e.actual.sequence().size() < 20) found.push_back(&e);
    if (found.empty()) return nullptr;
    return found[static_cast<size_t>(pick(random_, static_cast<int64_t>(found.size())))];
  }

  // Items of different shapes.
  void sequences() {
    const Entry* q = sequence();
    const Entry* x = real();
    const Entry* position = scalar();
    Value* last = constant(Tensor::scalar_i64(-1));
    switch (q == nullptr ? pick(random_, 2) : pick(random_, 8)) {
      case 0:
        add("sequence_empty", {});
        break;
      case 1:
        if (const Entry* y = real(); x && y) add("sequence_construct", {x->value, y->value});
        break;
      case 2:
      case 3:
        if (x) add("sequence_insert", {q->value, x->value});
        break;
      case 4:
        if (x) add("sequence_insert", {q->value, x->value, position ? position->value : last});
        break;
      case 5:
        add("sequence_at", {q->value, position && chance(random_, 50) ? position->value : last});
        break;
      case 6:
        add("sequence_length", {q->value});
        break;
      default:
        add("sequence_erase", {q->value});
    }
  }

  void conditions() {
    static constexpr std::string_view ops[] = {"less", "greater", "equal"};
    if (const Entry* a = scalar())
      add(ops[pick(random_, 3)], {a->value, constant(Tensor::scalar_i64(pick(random_, 4)))});
  }

  // A value that a body may yield for a state: of its own, another state, or one from outside.
  const Entry* next_of(const Taken& taken, const Entry& state) {
    auto fits = [&](const Entry& e) {
      if (!state.actual.is_tensor()) return e.actual.is_sequence();
      return e.actual.is_tensor() && e.dtype() == state.dtype();
    };
    std::vector<const Entry*> found;
    for (const Entry& e : taken.values)
      if (fits(e)) found.push_back(&e);
    if (!found.empty() && chance(random_, 80))
      return found[static_cast<size_t>(pick(random_, static_cast<int64_t>(found.size())))];
    for (const Entry& e : pool_)
      if (fits(e)) found.push_back(&e);
    return found.empty() ? nullptr : found[static_cast<size_t>(pick(random_, static_cast<int64_t>(found.size())))];
  }

  // Values from outside by which a body was made, as its parameters.
  static void use_parameters(ir::Region& region, const std::map<const Value*, Value*>& parameters) {
    auto swap = [&](Value*& use) {
      if (auto at = parameters.find(use); at != parameters.end()) use = at->second;
    };
    for (auto& node : region.nodes) {
      for (Value*& v : node->operands) swap(v);
      for (auto& inner : node->regions) use_parameters(*inner, parameters);
    }
    for (Value*& v : region.yields) swap(v);
  }

  std::vector<Entry> some_states() {
    std::vector<Entry> states;
    for (int64_t i = pick(random_, 3); i >= 0; --i)
      if (const Entry* e = real()) states.push_back(*e);
    if (const Entry* e = scalar(); e && chance(random_, 50)) states.push_back(*e);
    if (const Entry* e = sequence(); e && chance(random_, 50)) states.push_back(*e);
    return states;
  }

  // By a number of trips, by a condition, by both.
  void counted_loop(int depth) {
    std::vector<Entry> states = some_states();
    const Entry* limit = any([](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 0; });
    Value* trips = nullptr;
    if (limit != nullptr && chance(random_, 50)) trips = limit->value;
    if (trips == nullptr && chance(random_, 80)) trips = constant(Tensor::scalar_i64(pick(random_, 5)));
    const Entry* first = any([](const Entry& e) { return e.dtype() == DType::boolean && e.tensor().count() == 1; });
    Value* condition = first != nullptr && chance(random_, 40) ? first->value : nullptr;
    Value* number = limit != nullptr ? limit->value : nullptr;
    Taken taken = take(depth);
    auto body = std::make_unique<ir::Region>();
    std::map<const Value*, Value*> parameters;
    Value* index = body->add_parameter("i", Type::tensor(DType::i64, ir::SymDims{}));
    if (number != nullptr) parameters[number] = index;
    Value* go_on = body->add_parameter("go", Type::tensor(DType::boolean, ir::SymDims{}));
    std::vector<Value*> operands{trips, condition};
    for (const Entry& e : states) {
      Value* parameter = body->add_parameter("s", Type{});
      parameters[e.value] = parameter;
      operands.push_back(e.value);
    }
    body->nodes = std::move(taken.nodes);
    body->yields.push_back(chance(random_, 50) ? leaving_after(*body, index) : go_on);
    for (const Entry& e : taken.values)
      if (e.actual.is_tensor() && e.dtype() == DType::boolean && e.tensor().count() == 1 && chance(random_, 30))
        body->yields[0] = e.value;
    for (const Entry& e : states) {
      const Entry* next = next_of(taken, e);
      if (next == nullptr) return;
      body->yields.push_back(next->value);
    }
    size_t outputs = 0;
    for (int64_t i = pick(random_, 3); i > 0; --i)
      if (const Entry* e = yield_of(taken, chance(random_, 70) ? DType::f32 : DType::i64)) {
        body->yields.push_back(e->value);
        ++outputs;
      }
    use_parameters(*body, parameters);
    add_loop("loop", std::move(operands), {}, states.size() + outputs, std::move(body));
  }

  void add_loop(std::string_view op, std::vector<Value*> operands, ir::Attributes attrs, size_t results,
                std::unique_ptr<ir::Region> body) {
    std::vector<std::unique_ptr<ir::Region>> regions;
    regions.push_back(std::move(body));
    add(op, std::move(operands), std::move(attrs), results, std::move(regions));
  }

  // A condition that ends the loop after a few trips, added to its body.
  Value* leaving_after(ir::Region& body, Value* index) {
    auto node = std::make_unique<ir::Node>();
    node->op = ops::op_set().find("less");
    node->operands = {index, constant(Tensor::scalar_i64(pick(random_, 4)))};
    node->source = fmt::format("leave_{}", ++names_);
    Value* out = node->add_result(fmt::format("v{}_0", names_));
    body.nodes.push_back(std::move(node));
    return out;
  }

  void scan_of_axes(int depth) {
    std::vector<Entry> states = some_states();
    std::erase_if(states, [](const Entry& e) { return !e.actual.is_tensor(); });
    const Entry* input = real(1);
    if (input == nullptr) return;
    Entry whole = *input;
    int64_t axis = pick(random_, whole.rank());
    Taken taken = take(depth);
    auto body = std::make_unique<ir::Region>();
    std::map<const Value*, Value*> parameters;
    std::vector<Value*> operands;
    for (const Entry& e : states) {
      parameters[e.value] = body->add_parameter("s", Type{});
      operands.push_back(e.value);
    }
    parameters[whole.value] = body->add_parameter("x", Type{});
    operands.push_back(whole.value);
    body->nodes = std::move(taken.nodes);
    for (const Entry& e : states) {
      const Entry* next = next_of(taken, e);
      if (next == nullptr) return;
      body->yields.push_back(next->value);
    }
    const Entry* output = yield_of(taken, DType::f32);
    if (output == nullptr) return;
    body->yields.push_back(output->value);
    ir::Attributes attrs = attr("num_scan_inputs", int64_t{1});
    attrs.set("scan_input_axes", std::vector<int64_t>{chance(random_, 30) ? axis - whole.rank() : axis});
    attrs.set("scan_input_directions", std::vector<int64_t>{pick(random_, 2)});
    attrs.set("scan_output_axes", std::vector<int64_t>{pick(random_, output->rank() + 1)});
    attrs.set("scan_output_directions", std::vector<int64_t>{pick(random_, 2)});
    use_parameters(*body, parameters);
    add_loop("scan", std::move(operands), std::move(attrs), states.size() + 1, std::move(body));
  }

  void map(int depth) {
    const Entry* q = sequence();
    const Entry* x = real();
    if (q == nullptr || x == nullptr) return;
    Entry items = *q;
    Entry other = *x;
    Taken taken = take(depth);
    const Entry* output = yield_of(taken, DType::f32);
    if (output == nullptr) return;
    auto body = std::make_unique<ir::Region>();
    std::map<const Value*, Value*> parameters;
    parameters[other.value] = body->add_parameter("x", Type{});
    body->add_parameter("y", Type{});
    body->yields = {output->value};
    body->nodes = std::move(taken.nodes);
    use_parameters(*body, parameters);
    add_loop("sequence_map", {items.value, other.value}, {}, 1, std::move(body));
  }

  // --- regions: nodes are made outside, where they run, and moved in ---

  // Makes a few nodes and takes them out of the current region, with the values they gave.
  Taken take(int depth) {
    size_t first_node = region_->nodes.size();
    size_t first_value = pool_.size();
    int64_t count = 1 + pick(random_, 4);
    for (int64_t i = 0; i < count && budget_ > 0; ++i) step(depth + 1);
    Taken out;
    for (size_t i = first_node; i < region_->nodes.size(); ++i) out.nodes.push_back(std::move(region_->nodes[i]));
    region_->nodes.resize(first_node);
    out.values.assign(pool_.begin() + static_cast<std::ptrdiff_t>(first_value), pool_.end());
    pool_.resize(first_value);
    return out;
  }

  // A value of the region, or one from outside, of this dtype.
  const Entry* yield_of(const Taken& taken, DType dtype) {
    std::vector<const Entry*> found;
    for (const Entry& e : taken.values)
      if (e.actual.is_tensor() && e.dtype() == dtype) found.push_back(&e);
    if (!found.empty()) return found[static_cast<size_t>(pick(random_, static_cast<int64_t>(found.size())))];
    return any([&](const Entry& e) { return e.dtype() == dtype; });
  }

  void branch(int depth) {
    const Entry* condition = any([](const Entry& e) { return e.dtype() == DType::boolean && e.tensor().count() == 1; });
    if (condition == nullptr) return;
    Value* chosen = condition->value;
    std::vector<std::unique_ptr<ir::Region>> arms;
    for (int i = 0; i < 2; ++i) {
      Taken taken = take(depth);
      auto arm = std::make_unique<ir::Region>();
      for (DType dtype : {DType::f32, DType::i64}) {
        const Entry* value = yield_of(taken, dtype);
        if (value == nullptr) value = yield_of(taken, DType::f32);
        if (value == nullptr) return;
        arm->yields.push_back(value->value);
      }
      arm->nodes = std::move(taken.nodes);
      arms.push_back(std::move(arm));
    }
    add("if", {chosen}, {}, 2, std::move(arms));
  }

  void loop(int depth) {
    const Entry* state = real();
    const Entry* counter = scalar();
    if (state == nullptr || counter == nullptr) return;
    Value* initial = state->value;
    Value* initial_count = counter->value;
    const Entry* limit = any([](const Entry& e) { return e.dtype() == DType::i64 && e.rank() == 0; });
    Value* trips =
        limit != nullptr && chance(random_, 60) ? limit->value : constant(Tensor::scalar_i64(pick(random_, 4)));
    bool scan = chance(random_, 30) && state->rank() > 0;
    Taken taken = take(depth);
    auto body = std::make_unique<ir::Region>();
    std::map<const Value*, Value*> parameters;
    Value* go_on = nullptr;
    if (!scan) {
      parameters[trips] = body->add_parameter("i", Type::tensor(DType::i64, ir::SymDims{}));
      go_on = body->add_parameter("go", Type::tensor(DType::boolean, ir::SymDims{}));
    }
    parameters[initial] = body->add_parameter("s", Type{});
    if (!parameters.contains(initial_count))
      parameters[initial_count] = body->add_parameter("n", Type{});
    else
      body->add_parameter("n", Type{});
    const Entry* next = yield_of(taken, DType::f32);
    const Entry* count = yield_of(taken, DType::i64);
    const Entry* output = yield_of(taken, DType::f32);
    if (!next || !count || !output) return;
    if (scan)
      body->add_parameter("x", Type{});
    else
      body->yields.push_back(go_on);
    body->yields.insert(body->yields.end(), {next->value, count->value, output->value});
    body->nodes = std::move(taken.nodes);
    std::function<void(ir::Region&)> rename = [&](ir::Region& r) {
      auto swap = [&](Value*& use) {
        if (auto at = parameters.find(use); at != parameters.end()) use = at->second;
      };
      for (auto& node : r.nodes) {
        for (Value*& v : node->operands) swap(v);
        for (auto& inner : node->regions) rename(*inner);
      }
      for (Value*& v : r.yields) swap(v);
    };
    rename(*body);
    std::vector<std::unique_ptr<ir::Region>> regions;
    regions.push_back(std::move(body));
    if (scan)
      add("scan", {initial, initial_count, initial}, attr("num_scan_inputs", int64_t{1}), 3, std::move(regions));
    else
      add("loop", {trips, nullptr, initial, initial_count}, {}, 3, std::move(regions));
  }

  Random random_;
  int budget_;
  Mix mix_;
  std::unique_ptr<ir::Module> module_;
  ir::Function* main_;
  ir::Region* region_;
  std::vector<Entry> pool_;
  std::vector<HostValue> actual_inputs_;
  int names_ = 0;
};

}  // namespace

RandomProgram random_program(uint64_t seed, int nodes, Mix mix) { return Generator(seed, nodes, mix).run(); }

std::vector<HostValue> random_inputs(const ir::Module& module, Random& random) {
  std::map<std::string, int64_t, std::less<>> symbols;
  std::vector<HostValue> inputs;
  for (const auto& p : module.main().body.parameters) {
    Dims dims;
    if (!p->type.dims) {
      for (int64_t i = pick(random, 4); i > 0; --i) dims.push_back(sizes[pick(random, std::size(sizes))]);
    } else {
      for (sym::Expr e : *p->type.dims) {
        if (!e.constant()) symbols.try_emplace(std::string(e.symbol_name()), sizes[pick(random, std::size(sizes))]);
        dims.push_back(e.constant() ? *e.constant() : symbols.find(e.symbol_name())->second);
      }
    }
    inputs.push_back(random_tensor(p->type.dtype, dims, random));
  }
  return inputs;
}

}  // namespace selkie::tests
