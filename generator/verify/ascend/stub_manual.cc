// Stand-ins for the classes of CANN in which MindSpore keeps values: just enough of the
// ge:: object model for shapes, types and names to come back as they were put in. Each
// class holds one pointer, as CANN's do, and std::string has the old ABI. The names and
// signatures are those that the symbol tables of MindSpore's Ascend plugin ask for.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>
using std::string;
namespace ge {
typedef uint32_t graphStatus;
enum DataType : int {};
enum Format : int {};
enum Placement : int {};
struct StatusFactory {
  std::map<uint32_t, string> d;
  static StatusFactory* Instance();
};
StatusFactory* StatusFactory::Instance() {
  static StatusFactory* f = new StatusFactory();
  return f;
}

class AscendString {
  std::shared_ptr<string> p;

 public:
  AscendString() = default;
  AscendString(const char*);
  const char* GetString() const;
  bool operator<(const AscendString&) const;
};
AscendString::AscendString(const char* s)
    : p(s ? std::make_shared<string>(s) : nullptr) {}
const char* AscendString::GetString() const { return p ? p->c_str() : ""; }
bool AscendString::operator<(const AscendString& o) const {
  return string(GetString()) < string(o.GetString());
}

class Shape {
  std::shared_ptr<std::vector<int64_t>> p;

 public:
  Shape();
  explicit Shape(const std::vector<int64_t>&);
  graphStatus SetDim(size_t, int64_t);
  int64_t GetDim(size_t) const;
  std::vector<int64_t> GetDims() const;
  size_t GetDimNum() const;
};
Shape::Shape() : p(std::make_shared<std::vector<int64_t>>()) {}
Shape::Shape(const std::vector<int64_t>& v)
    : p(std::make_shared<std::vector<int64_t>>(v)) {}
graphStatus Shape::SetDim(size_t i, int64_t v) {
  if (i < p->size()) (*p)[i] = v;
  return 0;
}
int64_t Shape::GetDim(size_t i) const { return p && i < p->size() ? (*p)[i] : 0; }
std::vector<int64_t> Shape::GetDims() const { return p ? *p : std::vector<int64_t>(); }
size_t Shape::GetDimNum() const { return p ? p->size() : 0; }

struct TDI {
  Shape s, os;
  Format f{};
  DataType d{};
};
class TensorDesc {
  std::shared_ptr<TDI> p;

 public:
  TensorDesc();
  TensorDesc(Shape, Format, DataType);
  TensorDesc(const TensorDesc&);
  TensorDesc(TensorDesc&&);
  void SetDataType(DataType);
  void SetPlacement(Placement);
  Placement GetPlacement() const;
  void SetRealDimCnt(int64_t);
  void SetOriginShape(const Shape&);
  void SetOriginFormat(Format);
  void SetShape(const Shape&);
  void SetFormat(Format);
  DataType GetDataType() const;
  Shape GetOriginShape() const;
  Shape GetShape() const;
  Format GetFormat() const;
};
TensorDesc::TensorDesc() : p(std::make_shared<TDI>()) {}
TensorDesc::TensorDesc(Shape s, Format f, DataType d) : p(std::make_shared<TDI>()) {
  p->s = s;
  p->os = s;
  p->f = f;
  p->d = d;
}
TensorDesc::TensorDesc(const TensorDesc& o) : p(std::make_shared<TDI>(*o.p)) {}
TensorDesc::TensorDesc(TensorDesc&& o) : p(std::move(o.p)) {
  o.p = std::make_shared<TDI>();
}
void TensorDesc::SetDataType(DataType d) { p->d = d; }
void TensorDesc::SetPlacement(Placement) {}
Placement TensorDesc::GetPlacement() const { return Placement(0); }
void TensorDesc::SetRealDimCnt(int64_t) {}
void TensorDesc::SetOriginShape(const Shape& s) { p->os = s; }
void TensorDesc::SetOriginFormat(Format) {}
void TensorDesc::SetShape(const Shape& s) { p->s = s; }
void TensorDesc::SetFormat(Format f) { p->f = f; }
DataType TensorDesc::GetDataType() const { return p->d; }
Shape TensorDesc::GetOriginShape() const { return p->os; }
Shape TensorDesc::GetShape() const { return p->s; }
Format TensorDesc::GetFormat() const { return p->f; }

struct TI {
  TensorDesc d;
  std::vector<uint8_t> b;
};
class Tensor {
  std::shared_ptr<TI> p;

 public:
  Tensor();
  explicit Tensor(const TensorDesc&);
  Tensor(const TensorDesc&, const uint8_t*, size_t);
  uint8_t* GetData();
  graphStatus SetData(const uint8_t*, size_t);
  graphStatus SetData(uint8_t*, size_t, const std::function<void(uint8_t*)>&);
  graphStatus SetData(const string&);
  graphStatus SetData(const std::vector<string>&);
  TensorDesc GetTensorDesc() const;
  size_t GetSize() const;
};
Tensor::Tensor() : p(std::make_shared<TI>()) {}
Tensor::Tensor(const TensorDesc& d) : p(std::make_shared<TI>()) {
  p->d.~TensorDesc();
  new (&p->d) TensorDesc(d);
}
Tensor::Tensor(const TensorDesc& d, const uint8_t* b, size_t n)
    : p(std::make_shared<TI>()) {
  p->d.~TensorDesc();
  new (&p->d) TensorDesc(d);
  if (b) p->b.assign(b, b + n);
}
uint8_t* Tensor::GetData() { return p->b.data(); }
graphStatus Tensor::SetData(const uint8_t* b, size_t n) {
  if (b) p->b.assign(b, b + n);
  return 0;
}
graphStatus Tensor::SetData(uint8_t* b, size_t n,
                            const std::function<void(uint8_t*)>&) {
  if (b) p->b.assign(b, b + n);
  return 0;
}
graphStatus Tensor::SetData(const string&) { return 0; }
graphStatus Tensor::SetData(const std::vector<string>&) { return 0; }
TensorDesc Tensor::GetTensorDesc() const { return p->d; }
size_t Tensor::GetSize() const { return p->b.size(); }

class TensorType {
  std::shared_ptr<int> p;

 public:
  TensorType(const std::initializer_list<DataType>&);
};
TensorType::TensorType(const std::initializer_list<DataType>&) {}
class Promote {
  std::shared_ptr<void> p;

 public:
  Promote(const std::initializer_list<const char*>&);
};
Promote::Promote(const std::initializer_list<const char*>&) {}

struct OpI {
  string name, type;
  std::vector<string> ins, outs;
  std::map<string, int64_t> ia;
};
class Operator {
  std::shared_ptr<OpI> p;

 public:
  Operator() {}
  explicit Operator(const string&);
  explicit Operator(const char*);
  Operator(const string&, const string&);
  Operator(const AscendString&, const AscendString&);
  Operator(const char*, const char*);
  virtual ~Operator() = default;
  graphStatus GetName(AscendString&) const;
  string GetName() const;
  graphStatus GetOpType(AscendString&) const;
  string GetOpType() const;
  TensorDesc GetOutputDesc(const string&) const;
  TensorDesc GetOutputDesc(uint32_t) const;
  Operator& SetAttr(const char*, int64_t);
  Operator& SetAttr(const char*, uint32_t);
  void AttrRegister(const char*, int64_t);
  graphStatus GetAttr(const char*, int64_t&) const;
  int GetDynamicOutputNum(const string&) const;
};
Operator& Operator::SetAttr(const char* n, int64_t v) {
  if (p) p->ia[n] = v;
  return *this;
}
Operator& Operator::SetAttr(const char* n, uint32_t v) {
  if (p) p->ia[n] = v;
  return *this;
}
void Operator::AttrRegister(const char* n, int64_t v) {
  if (p) p->ia.emplace(n, v);
}
graphStatus Operator::GetAttr(const char* n, int64_t& v) const {
  if (p && p->ia.count(n)) {
    v = p->ia[n];
    return 0;
  }
  return 0xFFFFFFFF;
}
int Operator::GetDynamicOutputNum(const string&) const { return 0; }
#define MK(n, t)               \
  p = std::make_shared<OpI>(); \
  p->name = n;                 \
  p->type = t;
Operator::Operator(const string& t){MK("", t)} Operator::Operator(const char* t){
    MK("", t)} Operator::Operator(const string& n, const string& t){
    MK(n, t)} Operator::Operator(const AscendString& n, const AscendString& t){
    MK(n.GetString(), t.GetString())} Operator::Operator(const char* n, const char* t){
    MK(n, t)} graphStatus Operator::GetName(AscendString& s) const {
  s = AscendString(p ? p->name.c_str() : "");
  return 0;
}
string Operator::GetName() const { return p ? p->name : ""; }
graphStatus Operator::GetOpType(AscendString& s) const {
  s = AscendString(p ? p->type.c_str() : "");
  return 0;
}
string Operator::GetOpType() const { return p ? p->type : ""; }
TensorDesc Operator::GetOutputDesc(const string&) const { return TensorDesc(); }
TensorDesc Operator::GetOutputDesc(uint32_t) const { return TensorDesc(); }

typedef std::function<Operator(const AscendString&)> CreatorV2;
static std::map<string, CreatorV2>& reg() {
  static auto* m = new std::map<string, CreatorV2>();
  return *m;
}
class OperatorCreatorRegister {
 public:
  OperatorCreatorRegister(const char*, const CreatorV2&);
  ~OperatorCreatorRegister() = default;
};
OperatorCreatorRegister::OperatorCreatorRegister(const char* t, const CreatorV2& c) {
  reg()[t] = c;
}
class OperatorFactory {
 public:
  static Operator CreateOperator(const char*, const char*);
  static Operator CreateOperator(const string&, const string&);
  static bool IsExistOp(const char*);
  static bool IsExistOp(const string&);
};
Operator OperatorFactory::CreateOperator(const char* n, const char* t) {
  auto i = reg().find(t);
  if (i != reg().end()) return i->second(AscendString(n));
  return Operator(n, t);
}
Operator OperatorFactory::CreateOperator(const string& n, const string& t) {
  return CreateOperator(n.c_str(), t.c_str());
}
bool OperatorFactory::IsExistOp(const char* t) { return true; }
bool OperatorFactory::IsExistOp(const string& t) { return IsExistOp(t.c_str()); }

struct GI {
  string n;
};
class GNode {
  std::shared_ptr<int> p;

 public:
  std::vector<std::shared_ptr<GNode>> GetInControlNodes() const;
  std::vector<std::shared_ptr<GNode>> GetOutControlNodes() const;
  std::pair<std::shared_ptr<GNode>, int32_t> GetInDataNodesAndPortIndexs(int32_t) const;
  std::vector<std::pair<std::shared_ptr<GNode>, int32_t>> GetOutDataNodesAndPortIndexs(
      int32_t) const;
  graphStatus GetName(AscendString&) const;
  graphStatus GetType(AscendString&) const;
};
std::vector<std::shared_ptr<GNode>> GNode::GetInControlNodes() const { return {}; }
std::vector<std::shared_ptr<GNode>> GNode::GetOutControlNodes() const { return {}; }
std::pair<std::shared_ptr<GNode>, int32_t> GNode::GetInDataNodesAndPortIndexs(
    int32_t) const {
  return {nullptr, 0};
}
std::vector<std::pair<std::shared_ptr<GNode>, int32_t>>
GNode::GetOutDataNodesAndPortIndexs(int32_t) const {
  return {};
}
graphStatus GNode::GetName(AscendString&) const { return 0; }
graphStatus GNode::GetType(AscendString&) const { return 0; }
class GraphBuffer {
  std::shared_ptr<int> p;

 public:
  GraphBuffer();
  ~GraphBuffer();
};
GraphBuffer::GraphBuffer() {}
GraphBuffer::~GraphBuffer() {}
class Graph {
  std::shared_ptr<GI> p;

 public:
  std::vector<GNode> GetDirectNode() const;
  string GetName() const;
  explicit Graph(const char*);
  explicit Graph(const string&);
  graphStatus GetName(AscendString&) const;
};
std::vector<GNode> Graph::GetDirectNode() const { return {}; }
string Graph::GetName() const { return p ? p->n : ""; }
Graph::Graph(const char* n) : p(new GI{n}) {}
Graph::Graph(const string& n) : p(new GI{n}) {}
class CompiledGraphSummary {
  std::shared_ptr<int> p;

 public:
  graphStatus GetEventNum(size_t&) const;
  graphStatus GetStreamNum(size_t&) const;
  graphStatus GetConstMemorySize(size_t&) const;
  graphStatus GetFeatureMemorySize(size_t&) const;
  graphStatus GetFixedFeatureMemorySize(size_t&) const;
  graphStatus GetRefreshableFeatureMemorySize(size_t&) const;
  graphStatus GetFeatureMemoryBaseRefreshable(bool&) const;
  bool IsStatic() const;
};
#define Z(n)                                             \
  graphStatus CompiledGraphSummary::n(size_t& v) const { \
    v = 0;                                               \
    return 0;                                            \
  }
Z(GetEventNum)
Z(GetStreamNum)
Z(GetConstMemorySize) Z(GetFeatureMemorySize) Z(GetFixedFeatureMemorySize)
    Z(GetRefreshableFeatureMemorySize) graphStatus
    CompiledGraphSummary::GetFeatureMemoryBaseRefreshable(bool& v) const {
  v = false;
  return 0;
}
bool CompiledGraphSummary::IsStatic() const { return true; }
class Session {
 public:
  explicit Session(const std::map<string, string>&);
  ~Session();
  std::shared_ptr<CompiledGraphSummary> GetCompiledGraphSummary(uint32_t);
};
std::shared_ptr<CompiledGraphSummary> Session::GetCompiledGraphSummary(uint32_t) {
  return std::make_shared<CompiledGraphSummary>();
}
Session::Session(const std::map<string, string>&) {}
Session::~Session() {}
}  // namespace ge

extern "C" {
const char* aclrtGetSocName() { return "Ascend910B1"; }
}
