import{a as u,b as j}from"./chunk-DEGZSPRG.js";var x=u(t=>{"use strict";var p=Symbol.for("react.transitional.element"),v=Symbol.for("react.fragment");function n(i,r,e){var s=null;if(e!==void 0&&(s=""+e),r.key!==void 0&&(s=""+r.key),"key"in r){e={};for(var o in r)o!=="key"&&(e[o]=r[o])}else e=r;return r=e.ref,{$$typeof:p,type:i,key:s,ref:r!==void 0?r:null,props:e}}t.Fragment=v;t.jsx=n;t.jsxs=n});var d=u((T,E)=>{"use strict";E.exports=x()});var l=j(d()),a=l.default,{Fragment:_,jsx:f,jsxs:m}=l.default;export{_ as Fragment,a as default,f as jsx,m as jsxs};
/*! Bundled license information:

react/cjs/react-jsx-runtime.production.js:
  (**
   * @license React
   * react-jsx-runtime.production.js
   *
   * Copyright (c) Meta Platforms, Inc. and affiliates.
   *
   * This source code is licensed under the MIT license found in the
   * LICENSE file in the root directory of this source tree.
   *)
*/
